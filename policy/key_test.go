package policy

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// vector is one entry of testdata/keys.json, which was worked out by another
// program from the words of [KeyOf]. The SQL tests read the same file.
type vector struct {
	Note       string            `json:"note"`
	PolicyID   string            `json:"policyId"`
	Per        []string          `json:"per"`
	IPPrefix   IPPrefix          `json:"ipPrefix"`
	Attributes map[string]string `json:"attributes"`
	Hex        string            `json:"hex"`
}

func TestKeyOfGoldenVectors(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(content, &vectors); err != nil || len(vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for _, vector := range vectors {
		spec := &Spec{IPPrefix: vector.IPPrefix}
		for _, name := range vector.Per {
			attribute, known := ParseAttribute(name)
			if !known {
				t.Fatalf("%s: no attribute is called %q", vector.Note, name)
			}
			spec.Per = append(spec.Per, attribute)
		}
		var values [AttributeCount]string
		for name, value := range vector.Attributes {
			attribute, _ := ParseAttribute(name)
			values[attribute] = value
		}
		key := KeyOf(vector.PolicyID, spec, &values)
		if got := hex.EncodeToString(key[:]); got != vector.Hex {
			t.Errorf("%s: got %s, want %s", vector.Note, got, vector.Hex)
		}
	}
}

// FuzzKey looks for two different buckets with one encoding.
func FuzzKey(f *testing.F) {
	f.Add("p", "ab", "c", uint8(1), "p", "a", "bc", uint8(1))
	f.Add("p", "", "x", uint8(0), "p", "x", "", uint8(0))
	f.Add("p", "user", "x", uint8(2), "puser", "", "x", uint8(3))
	f.Add("p", "a", "operation", uint8(3), "p", "operation", "a", uint8(3))
	f.Fuzz(func(t *testing.T, id1, account1, user1 string, per1 uint8, id2, account2, user2 string, per2 uint8) {
		key1, identity1 := keyAndIdentity(id1, account1, user1, per1)
		key2, identity2 := keyAndIdentity(id2, account2, user2, per2)
		if (key1 == key2) != (identity1 == identity2) {
			t.Fatalf("keys %x and %x stand for %q and %q", key1, key2, identity1, identity2)
		}
	})
}

// keyAndIdentity gives a key and, as a comparable value, all that it must
// stand for. Bits 0 and 1 of per choose among two attributes.
func keyAndIdentity(id, account, user string, per uint8) (Key, [5]string) {
	spec := &Spec{}
	identity := [5]string{0: id}
	if per&1 != 0 {
		spec.Per = append(spec.Per, Account)
		identity[1], identity[2] = "account", account
	}
	if per&2 != 0 {
		spec.Per = append(spec.Per, User)
		identity[3], identity[4] = "user", user
	}
	return KeyOf(id, spec, &[AttributeCount]string{Account: account, User: user}), identity
}
