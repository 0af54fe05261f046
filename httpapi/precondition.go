package httpapi

import (
	"slices"
	"strconv"
	"strings"
)

// tagsMax bounds the entity tags of one header; a caller has seen a handful of
// versions at most.
const tagsMax = 64

// tag is one entity tag of RFC 9110.
type tag struct {
	version int // of the form "v7", else 0: a tag that we never gave and that never matches
	weak    bool
}

// tags are the entity tags of an If-Match or If-None-Match header.
type tags struct {
	any  bool // the header is *
	list []tag
}

// given says whether there was such a header.
func (t tags) given() bool { return t.any || len(t.list) > 0 }

// strong gives the versions that strong comparison can match.
func (t tags) strong() []int {
	var versions []int
	for _, tag := range t.list {
		if !tag.weak && tag.version > 0 && !slices.Contains(versions, tag.version) {
			versions = append(versions, tag.version)
		}
	}
	return versions
}

// matchWeakly says whether a version is among the tags, weak ones included.
func (t tags) matchWeakly(version int) bool {
	return t.any || slices.ContainsFunc(t.list, func(tag tag) bool { return tag.version == version })
}

// entityTag is the ETag of a policy version. It names the version, which never
// changes, so it is strong.
func entityTag(version int) string { return `"v` + strconv.Itoa(version) + `"` }

// parseTags reads the lines of an If-Match or If-None-Match header: * or a
// list of entity tags.
func parseTags(lines []string) (tags, error) {
	var parsed tags
	if len(lines) == 0 {
		return parsed, nil
	}
	rest := strings.Trim(strings.Join(lines, ","), " \t")
	if rest == "*" {
		return tags{any: true}, nil
	}
	for rest != "" {
		if rest[0] == ',' { // recipients ignore empty elements (RFC 9110, section 5.6.1)
			rest = strings.TrimLeft(rest[1:], " \t")
			continue
		}
		next, after, ok := cutTag(rest)
		if !ok || len(parsed.list) == tagsMax {
			return tags{}, malformedTags()
		}
		parsed.list = append(parsed.list, next)
		rest = strings.TrimLeft(after, " \t")
		if rest != "" && rest[0] != ',' {
			return tags{}, malformedTags()
		}
	}
	if len(parsed.list) == 0 {
		return tags{}, malformedTags()
	}
	return parsed, nil
}

func malformedTags() error {
	return badRequest(`If-Match and If-None-Match take * or a list of entity tags such as "v7", at most ` + strconv.Itoa(tagsMax) + `.`)
}

// cutTag cuts one entity tag from the front of a list.
func cutTag(list string) (first tag, after string, ok bool) {
	list, first.weak = strings.CutPrefix(list, "W/")
	opaque, quoted := strings.CutPrefix(list, `"`)
	if !quoted {
		return tag{}, "", false
	}
	opaque, after, closed := strings.Cut(opaque, `"`)
	if !closed || strings.ContainsFunc(opaque, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return tag{}, "", false
	}
	if number, ours := strings.CutPrefix(opaque, "v"); ours {
		version, err := strconv.Atoi(number)
		if err == nil && version > 0 && version <= versionMax && strconv.Itoa(version) == number {
			first.version = version
		}
	}
	return first, after, true
}
