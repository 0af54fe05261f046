package pgstore_test

import (
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rationhq/ration/policy"
)

// keyed makes a policy's key of other attributes, as a restart would.
func (b *bench) keyed(id string, per []string, prefix policy.IPPrefix) *policy.Spec {
	b.Helper()
	b.exec(`UPDATE ration.policy_version AS v
		SET content = (v.content::jsonb || jsonb_build_object('per', $2::text[], 'ipPrefix', jsonb_build_object('v4', $3::int, 'v6', $4::int)))::json
		FROM ration.policy AS p WHERE p.number = v.number AND p.id = $1`, id, per, prefix.V4, prefix.V6)
	spec := &policy.Spec{IPPrefix: prefix}
	for _, name := range per {
		attribute, known := policy.ParseAttribute(name)
		if !known {
			b.Fatalf("no attribute is called %q", name)
		}
		spec.Per = append(spec.Per, attribute)
	}
	slices.Sort(spec.Per)
	return spec
}

// bucketKey is what ration.bucket_key gives, "" for NULL.
func (b *bench) bucketKey(id string, attributes map[string]string) string {
	b.Helper()
	content, err := json.Marshal(attributes)
	if err != nil {
		b.Fatal(err)
	}
	return scalar[string](b, "SELECT coalesce(replace(ration.bucket_key($1, $2::jsonb)::text, '-', ''), '')", id, string(content))
}

func TestBucketKeyGoldenVectors(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../policy/testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Note, PolicyID, Hex string
		Per                 []string
		IPPrefix            policy.IPPrefix
		Attributes          map[string]string
	}
	if err := json.Unmarshal(content, &vectors); err != nil || len(vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	b := newBench(t)
	installed := map[string]bool{}
	for _, vector := range vectors {
		if !installed[vector.PolicyID] {
			installed[vector.PolicyID] = true
			b.install(vector.PolicyID, 0, shape{capacity: 1}, 0)
		}
		b.keyed(vector.PolicyID, vector.Per, vector.IPPrefix)
		if got := b.bucketKey(vector.PolicyID, vector.Attributes); got != vector.Hex {
			t.Errorf("%s: got %s, want %s", vector.Note, got, vector.Hex)
		}
	}
}

func TestBucketKeyEqualsKeyOf(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("p", 0, shape{capacity: 1}, 0)
	characters := assigned()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom(characters), 1, 64, policy.TextBytesMax)
		names := rapid.SliceOfDistinct(rapid.IntRange(0, policy.AttributeCount-1), rapid.ID[int]).Draw(t, "per")
		prefix := policy.IPPrefix{V4: rapid.IntRange(1, 32).Draw(t, "v4"), V6: rapid.IntRange(1, 128).Draw(t, "v6")}
		per, attributes, values := []string{}, map[string]string{"more": "x"}, [policy.AttributeCount]string{}
		for _, i := range names {
			attribute := policy.Attribute(i)
			per = append(per, attribute.String())
			value := text.Draw(t, attribute.String())
			values[attribute] = value
			if attribute == policy.TargetAccount {
				values[attribute] = policy.CanonicalTarget(value)
			}
			if attribute == policy.IP {
				value = address().Draw(t, "ip")
				parsed, err := policy.ParseAddress(value)
				if err != nil {
					t.Fatal(err)
				}
				values[attribute] = parsed.String()
			}
			attributes[attribute.String()] = value
		}
		key := policy.KeyOf("p", b.keyed("p", per, prefix), &values)
		if got, want := b.bucketKey("p", attributes), hex.EncodeToString(key[:]); got != want {
			t.Fatalf("got %s, want %s, for %q by %q", got, want, per, attributes)
		}
	})
}

// address makes texts of addresses of both families, mapped ones among them.
func address() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		raw := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")
		v4, v6 := netip.AddrFrom4([4]byte(raw[:4])), netip.AddrFrom16([16]byte(raw))
		return rapid.SampledFrom([]string{v4.String(), v6.String(), v6.StringExpanded(), "::ffff:" + v4.String()}).Draw(t, "form")
	})
}

func TestBucketKeyOfAddressForms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("p", 0, shape{capacity: 1}, 0)
	spec := b.keyed("p", []string{"ip"}, policy.IPPrefix{V4: 32, V6: 64})
	for _, form := range []string{
		"192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1",
		"2001:db8::1", "2001:DB8:0:0::1", "2001:db8::ffff", "2001:db8:0:1::1", "::", "::1", "0.0.0.0", "255.255.255.255",
		"::192.0.2.1", "64:ff9b::192.0.2.1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::fffe:192.0.2.1", "::1:ffff:192.0.2.1",
	} {
		parsed, err := policy.ParseAddress(form)
		if err != nil {
			t.Fatal(err)
		}
		key := policy.KeyOf("p", spec, &[policy.AttributeCount]string{policy.IP: parsed.String()})
		if got, want := b.bucketKey("p", map[string]string{"ip": form}), hex.EncodeToString(key[:]); got != want {
			t.Errorf("%s: got %s, want %s", form, got, want)
		}
	}
	for _, form := range []string{"", "unknown", "192.0.2.01.5", "2001:db8::1%eth0"} {
		_, err := b.owner.Exec(t.Context(), "SELECT ration.bucket_key('p', jsonb_build_object('ip', $1::text))", form)
		if sqlState(err) != "22P02" {
			t.Errorf("%q: %v, want it to be no address", form, err)
		}
	}
}

func TestBucketKeyOfNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("p", 0, shape{capacity: 1}, 0)
	for name, key := range map[string]string{
		"no such policy":       b.bucketKey("q", map[string]string{"account": "A"}),
		"a missing attribute":  b.bucketKey("p", map[string]string{"user": "A"}),
		"an attribute of NULL": scalar[string](b, `SELECT coalesce(ration.bucket_key('p', '{"account": null}')::text, '')`),
	} {
		if key != "" {
			t.Errorf("%s: has the key %s", name, key)
		}
	}
}
