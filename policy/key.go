package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"strconv"
)

// keyDomain begins every key's encoding: a later encoding takes another name
// and cannot meet this one.
const keyDomain = "ration.key.v1"

// keyBytesUsual is what an encoding needs where texts are of usual length; a
// longer one is allocated.
const keyBytesUsual = 512

// KeyOf names the bucket of a policy for one set of attribute values: the
// first 16 bytes of the SHA-256 of a sequence of fields, each its length as
// four bytes, most significant first, and then its bytes. The fields are
//
//  1. "ration.key.v1"
//  2. the policy's id
//  3. for each attribute of spec.Per, in the order of the constants of
//     [Attribute], its name and its value
//
// For ip the name is "ip/" and the prefix length in decimal ("ip/32" for
// IPv4, "ip/64" for IPv6 by default) and the value the 4 or 16 bytes of the
// address with all later bits zero; every other name is the attribute's in
// policies and its value the text. The encoding is injective. The function
// ration.bucket_key gives the same in SQL; policy/testdata/keys.json holds
// both to it.
//
// Every attribute of spec.Per must be present in values, in canonical form.
func KeyOf(policyID string, spec *Spec, values *[AttributeCount]string) Key {
	var usual [keyBytesUsual]byte
	encoding := appendField(usual[:0], keyDomain)
	encoding = appendField(encoding, policyID)
	for _, attribute := range spec.Per {
		if attribute == IP {
			encoding = appendAddress(encoding, spec.IPPrefix, values[IP])
			continue
		}
		encoding = appendField(encoding, attribute.String())
		encoding = appendField(encoding, values[attribute])
	}
	sum := sha256.Sum256(encoding)
	return Key(sum[:len(Key{})])
}

// appendAddress appends name and value of an address.
func appendAddress(encoding []byte, prefix IPPrefix, text string) []byte {
	address, err := netip.ParseAddr(text)
	if err != nil {
		// Not reached by a canonical request. Whatever the text is, it must
		// not share a bucket with another.
		encoding = appendField(encoding, IP.String())
		return appendField(encoding, text)
	}
	masked, bits := prefix.cut(address)
	var name [len("ip/128")]byte
	encoding = appendField(encoding, strconv.AppendInt(append(name[:0], "ip/"...), int64(bits), 10))
	if masked.Is4() {
		raw := masked.As4()
		return appendField(encoding, raw[:])
	}
	raw := masked.As16()
	return appendField(encoding, raw[:])
}

// appendField appends one field with its length before it.
func appendField[Text string | []byte](encoding []byte, field Text) []byte {
	encoding = binary.BigEndian.AppendUint32(encoding, uint32(len(field))) //nolint:gosec // ids and texts have at most 256 bytes
	return append(encoding, field...)
}
