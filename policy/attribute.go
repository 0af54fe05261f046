package policy

// Attribute is one fact of a request that a policy can match or key by.
type Attribute uint8

// The attributes, in the canonical order of a key's encoding.
const (
	Account       Attribute = iota // the verified identity a gateway vouches for
	User                           // an end user within the account
	APIKey                         // an API key, as the gateway names it
	OAuthToken                     // an OAuth token, as the gateway names it
	IP                             // the client's address, cut to a prefix in keys
	TargetAccount                  // the account a sign-in attempt aims at, folded
	Plan                           // the caller's plan
	Region                         // the region asked in
	Operation                      // the standard name of what is asked

	AttributeCount = int(Operation) + 1
)

// identities are the attributes of which a request needs at least one.
var identities = [...]Attribute{Account, User, APIKey, OAuthToken, IP, TargetAccount}

// attributeNames are the names in policies (`per`) and in SQL.
var attributeNames = [AttributeCount]string{
	"account", "user", "apiKey", "oauthToken", "ip", "targetAccount", "plan", "region", "operation",
}

// String gives the name that policies and SQL use.
func (a Attribute) String() string { return attributeNames[a] }

// RequestMember gives the name that requests use.
func (a Attribute) RequestMember() string {
	if a == Account {
		return "verifiedAccount" // the gateway says by the name that it has verified it
	}
	return a.String()
}

// ParseAttribute finds an attribute by its name in policies.
func ParseAttribute(name string) (Attribute, bool) {
	for attribute := range Attribute(AttributeCount) {
		if attribute.String() == name {
			return attribute, true
		}
	}
	return 0, false
}
