package policy

import "crypto/sha256"

// Domains of the encodings below: none of them can meet a bucket's key.
const (
	operationDomain = "ration.operation.v1"
	contentDomain   = "ration.content.v1"
)

// OperationKeyOf names the operation id of a gateway ("" where they are not told
// apart) and, where there is one, of an account: an id means nothing to anybody
// else.
func OperationKeyOf(gateway, account, operationID string) Key {
	return fieldsKey(operationDomain, gateway, account, operationID)
}

// ContentOf is the fingerprint of what a request asks, but for its cost: two
// requests have the same if they have the same attributes.
func ContentOf(values *[AttributeCount]string) Key {
	return fieldsKey(contentDomain, values[:]...)
}

// fieldsKey is the first 128 bits of the SHA-256 of length-prefixed fields.
func fieldsKey(domain string, fields ...string) Key {
	var usual [keyBytesUsual]byte
	encoding := appendField(usual[:0], domain)
	for _, field := range fields {
		encoding = appendField(encoding, field)
	}
	sum := sha256.Sum256(encoding)
	return Key(sum[:len(Key{})])
}
