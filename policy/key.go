package policy

// KeyOf names the bucket of a policy for one set of attribute values.
func KeyOf(policyID string, spec *Spec, values *[AttributeCount]string) Key { return Key{} }
