package worker

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// keyword checks the value of a keyword.
type keyword func(c *schemaCheck, v any, at string, base *url.URL)

// keywords are those of all drafts. A keyword that isn't there may have any
// value: it is an annotation.
func keywords() map[string]keyword {
	all := map[string]keyword{}
	for _, k := range []struct {
		names string
		check keyword
	}{
		{"additionalItems additionalProperties contains else if then not propertyNames unevaluatedItems unevaluatedProperties contentSchema", (*schemaCheck).subschema},
		{"allOf anyOf oneOf prefixItems", schemaArray},
		{"properties $defs definitions dependentSchemas", objectOf((*schemaCheck).subschema)},
		{"patternProperties", patterns},
		{"items", items},
		{"dependencies", objectOf(schemaOrNames)},
		{"dependentRequired", objectOf(nameArray)},
		{"required", nameArray},
		{"type", typeNames},
		{"enum", enum},
		{"examples", isArray},
		{"pattern", pattern},
		{"maxItems minItems maxLength minLength maxProperties minProperties maxContains minContains", count},
		{"maximum minimum", isNumber},
		{"exclusiveMaximum exclusiveMinimum", exclusive},
		{"multipleOf", positive},
		{"$schema $id $anchor $dynamicAnchor $comment title description format contentEncoding contentMediaType", isText},
		{"uniqueItems readOnly writeOnly deprecated", isBool},
		{"$vocabulary", objectOf(isBool)},
		{"$recursiveAnchor", recursiveAnchor},
		{"$ref $dynamicRef $recursiveRef", reference},
	} {
		for name := range strings.FieldsSeq(k.names) {
			all[name] = k.check
		}
	}
	return all
}

func (c *schemaCheck) subschema(v any, at string, base *url.URL) { c.schema(v, at, base) }

func isArray(c *schemaCheck, v any, at string, _ *url.URL) {
	if _, ok := v.([]any); !ok {
		c.say(at, "must be an array, found %s", jsonKind(v))
	}
}

// enum had rules of its own up to draft 7.
func enum(c *schemaCheck, v any, at string, base *url.URL) {
	isArray(c, v, at, base)
	list, ok := v.([]any)
	if !ok || c.draft > draft7 {
		return
	}
	if len(list) == 0 {
		c.say(at, "must not be empty")
	}
	seen := map[string]bool{}
	for i, e := range list {
		text, _ := json.Marshal(e) // was JSON just now
		if seen[string(text)] {
			c.say(fmt.Sprintf("%s/%d", at, i), "is there twice")
		}
		seen[string(text)] = true
	}
}

// recursiveAnchor was a boolean for one draft.
func recursiveAnchor(c *schemaCheck, v any, at string, base *url.URL) {
	if c.draft == draft2020 {
		isText(c, v, at, base)
		return
	}
	isBool(c, v, at, base)
}

func isText(c *schemaCheck, v any, at string, _ *url.URL) {
	if _, ok := v.(string); !ok {
		c.say(at, "must be a text, found %s", jsonKind(v))
	}
}

func isBool(c *schemaCheck, v any, at string, _ *url.URL) {
	if _, ok := v.(bool); !ok {
		c.say(at, "must be true or false, found %s", jsonKind(v))
	}
}

func isNumber(c *schemaCheck, v any, at string, _ *url.URL) {
	if _, ok := number(v); !ok {
		c.say(at, "must be a number, found %s", jsonKind(v))
	}
}

func count(c *schemaCheck, v any, at string, _ *url.URL) {
	if f, ok := number(v); !ok || f < 0 || !isInteger(f) {
		c.say(at, "must be a whole number from 0, found %s", jsonKind(v))
	}
}

func positive(c *schemaCheck, v any, at string, _ *url.URL) {
	if f, ok := number(v); !ok || f <= 0 {
		c.say(at, "must be a number above 0, found %s", jsonKind(v))
	}
}

// exclusive bounds were booleans beside the bound in draft 4.
func exclusive(c *schemaCheck, v any, at string, base *url.URL) {
	if c.draft == draft4 {
		isBool(c, v, at, base)
		return
	}
	isNumber(c, v, at, base)
}

func pattern(c *schemaCheck, v any, at string, base *url.URL) {
	s, ok := v.(string)
	if !ok {
		isText(c, v, at, base)
	} else if _, err := regexp.Compile(s); err != nil {
		c.say(at, "%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
}

func typeNames(c *schemaCheck, v any, at string, base *url.URL) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 {
		c.say(at, "names no type")
	}
	seen := map[string]bool{}
	for i, t := range list {
		place := at
		if ok {
			place += "/" + strconv.Itoa(i)
		}
		name, _ := t.(string)
		if !slices.Contains(schemaTypes, name) {
			c.say(place, "%s is none of %s", jsonKind(t), strings.Join(schemaTypes, ", "))
		} else if seen[name] {
			c.say(place, "%q is there twice", name)
		}
		seen[name] = true
	}
}

// nameArray is a list of property names.
func nameArray(c *schemaCheck, v any, at string, base *url.URL) {
	list, ok := v.([]any)
	if !ok {
		c.say(at, "must be a list of property names, found %s", jsonKind(v))
		return
	}
	if c.draft == draft4 && len(list) == 0 {
		c.say(at, "must not be empty in draft 4")
	}
	seen := map[string]bool{}
	for i, e := range list {
		place := fmt.Sprintf("%s/%d", at, i)
		name, ok := e.(string)
		if !ok {
			isText(c, e, place, base)
		} else if seen[name] {
			c.say(place, "%q is there twice", shorten(name))
		}
		seen[name] = true
	}
}

func schemaArray(c *schemaCheck, v any, at string, base *url.URL) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		c.say(at, "must be a list of schemas that is not empty, found %s", jsonKind(v))
	}
	for i, e := range list {
		c.schema(e, fmt.Sprintf("%s/%d", at, i), base)
	}
}

// items could be a list before prefixItems.
func items(c *schemaCheck, v any, at string, base *url.URL) {
	if _, ok := v.([]any); ok && c.draft < draft2020 {
		schemaArray(c, v, at, base)
		return
	}
	c.schema(v, at, base)
}

func schemaOrNames(c *schemaCheck, v any, at string, base *url.URL) {
	if _, ok := v.([]any); ok {
		nameArray(c, v, at, base)
		return
	}
	c.schema(v, at, base)
}

// objectOf checks each value of an object.
func objectOf(check keyword) keyword {
	return func(c *schemaCheck, v any, at string, base *url.URL) {
		m, ok := v.(map[string]any)
		if !ok {
			c.say(at, "must be an object, found %s", jsonKind(v))
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			check(c, m[k], at+"/"+pointerEscape.Replace(k), base)
		}
	}
}

func patterns(c *schemaCheck, v any, at string, base *url.URL) {
	objectOf((*schemaCheck).subschema)(c, v, at, base)
	m, _ := v.(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pattern(c, k, at, base)
	}
}

func reference(c *schemaCheck, v any, at string, base *url.URL) {
	s, ok := v.(string)
	if !ok {
		isText(c, v, at, base)
		return
	}
	c.refs = append(c.refs, schemaRef{at, base, s})
}
