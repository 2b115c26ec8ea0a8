package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// This file holds a document against the meta-schemas of JSON Schema: which
// keyword has what kind of value. A library does the same in tests, where both
// must agree; linked here it would compile all meta-schemas at the start of
// every command, for more time than all the rest of a start takes.

// draft is a version of JSON Schema, by what its $schema says.
type draft int

const (
	draft4 draft = iota
	draft6
	draft7
	draft2019
	draft2020
)

// drafts by $schema, without a final #. The values are also what a schema may
// refer to outside of itself: they are known.
var drafts = map[string]draft{
	"http://json-schema.org/draft-04/schema":       draft4,
	"http://json-schema.org/draft-06/schema":       draft6,
	"http://json-schema.org/draft-07/schema":       draft7,
	"https://json-schema.org/draft/2019-09/schema": draft2019,
	"https://json-schema.org/draft/2020-12/schema": draft2020,
}

var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// schemaCheck is one run over a document.
type schemaCheck struct {
	draft    draft
	keywords map[string]keyword
	problems []string
	seen     map[string]bool // places that were checked as schemas
	ids      map[string]any  // schemas by URI
	at       map[string]string
	anchors  map[string]bool // URIs with a fragment that is no pointer
	refs     []schemaRef
}

type schemaRef struct {
	at   string
	base *url.URL
	ref  string
}

// checkSchema returns what keeps a decoded document (numbers as json.Number)
// from being a JSON Schema that refers to nothing outside of itself.
func checkSchema(doc any) error {
	c := &schemaCheck{draft: draft2020, keywords: keywords(), seen: map[string]bool{}, ids: map[string]any{}, at: map[string]string{}, anchors: map[string]bool{}}
	if m, ok := doc.(map[string]any); ok {
		if s, ok := m["$schema"].(string); ok {
			if c.draft, ok = drafts[strings.TrimSuffix(s, "#")]; !ok {
				return fmt.Errorf("its $schema %q is none of %s", shorten(s), strings.Join(slices.Sorted(maps.Keys(drafts)), ", "))
			}
		}
	}
	base := &url.URL{}
	c.ids[""] = doc
	c.schema(doc, "", base)
	for i := 0; i < len(c.refs); i++ { // a reference's target may have some more
		c.resolve(c.refs[i])
	}
	if len(c.problems) == 0 {
		return nil
	}
	slices.Sort(c.problems)
	return errors.New(strings.Join(slices.Compact(c.problems)[:min(len(c.problems), 5)], "; "))
}

func (c *schemaCheck) say(at, format string, args ...any) {
	if len(c.problems) < 100 {
		c.problems = append(c.problems, fmt.Sprintf("at '%s': ", shorten(at))+fmt.Sprintf(format, args...))
	}
}

// schema checks a value that must be a schema.
func (c *schemaCheck) schema(v any, at string, base *url.URL) {
	if c.seen[at] {
		return
	}
	c.seen[at] = true
	m, ok := v.(map[string]any)
	if !ok {
		if _, isBool := v.(bool); !isBool {
			c.say(at, "a schema is an object, found %s", jsonKind(v))
		}
		return
	}
	base = c.names(m, at, base)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if check := c.keywords[k]; check != nil {
			check(c, m[k], at+"/"+pointerEscape.Replace(k), base)
		}
	}
}

// names notes under which URIs a schema can be referred to.
func (c *schemaCheck) names(m map[string]any, at string, base *url.URL) *url.URL {
	key := "$id"
	if c.draft == draft4 {
		key = "id"
	}
	if id, ok := m[key].(string); ok {
		if u, err := base.Parse(id); err != nil {
			c.say(at+"/"+key, "%q is no URI", shorten(id))
		} else if c.draft <= draft7 && strings.HasPrefix(id, "#") {
			c.anchors[u.String()] = true
		} else {
			if u.Fragment != "" && c.draft >= draft2019 {
				c.say(at+"/"+key, "a fragment is written as $anchor")
			}
			u.Fragment = ""
			uri := u.String()
			if _, twice := c.ids[uri]; twice && c.at[uri] != at {
				c.say(at+"/"+key, "another schema has this URI")
			}
			c.ids[uri], c.at[uri] = m, at
			base = u
		}
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if a, ok := m[key].(string); ok {
			if !anchorText().MatchString(a) {
				c.say(at+"/"+key, "%q is no name", shorten(a))
			}
			u := *base
			u.Fragment = a
			if c.anchors[u.String()] && m["$anchor"] != m["$dynamicAnchor"] {
				c.say(at+"/"+key, "another schema has this name")
			}
			c.anchors[u.String()] = true
		}
	}
	return base
}

// resolve looks for a reference's target.
func (c *schemaCheck) resolve(r schemaRef) {
	u, err := r.base.Parse(r.ref)
	if err != nil {
		c.say(r.at, "%q is no URI", shorten(r.ref))
		return
	}
	if c.anchors[u.String()] {
		return
	}
	fragment := u.Fragment
	whole := *u
	whole.Fragment, whole.RawFragment = "", ""
	if _, known := drafts[whole.String()]; known {
		return
	}
	v, ok := c.ids[whole.String()]
	if !ok {
		c.problems = append(c.problems, fmt.Sprintf("it refers to %s; only references inside the schema are followed", shorten(r.ref)))
		return
	}
	at := c.at[whole.String()]
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		c.say(r.at, "there is no anchor %q", shorten(fragment))
		return
	}
	for _, step := range strings.Split(fragment, "/")[1:] {
		at += "/" + step
		step = pointerUnescape.Replace(step)
		switch in := v.(type) {
		case map[string]any:
			v, ok = in[step]
		case []any:
			var i int
			i, err = strconv.Atoi(step)
			if ok = err == nil && i >= 0 && i < len(in); ok {
				v = in[i]
			}
		default:
			ok = false
		}
		if !ok {
			c.say(r.at, "there is nothing at %q", shorten(r.ref))
			return
		}
	}
	c.schema(v, at, &whole)
}

var (
	pointerEscape   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")
	anchorText      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][-A-Za-z0-9._]*$`) })
)

// jsonKind names the kind of a value for people.
func jsonKind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "the number " + shorten(v.String())
	case string:
		return strconv.Quote(shorten(v))
	case []any:
		return "an array"
	}
	return "an object"
}

// number is a number's value; one beyond float64 is infinite.
func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	f, _ := n.Float64()
	return f, ok
}

func isInteger(f float64) bool { return f == math.Trunc(f) }
