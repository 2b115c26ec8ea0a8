package request

import (
	"slices"
	"strings"
)

// overridingNames are parameters of a query by which servers take another method or other
// headers than the request has: Symfony, Laravel and WordPress, Google's APIs, and those that
// read names of headers there. "_" stands for each of "-", ".", and a blank.
var overridingNames = []string{"_method", "$httpmethod", "$httpheaders", "x_http_method", "x_http_method_override", "x_method_override"}

// OverridingParameter returns the first parameter of the query that names another method or
// headers, as it was sent; "" if there is none.
func (t Target) OverridingParameter() string {
	return t.parameter(func(name string) bool {
		name, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(name)), "[")
		return slices.Contains(overridingNames, parting.Replace(name))
	})
}

// parting makes one of the characters that part the words of a name: PHP takes "." and a
// blank for "_".
var parting = strings.NewReplacer("-", "_", ".", "_", " ", "_")

// parameter returns the first parameter of the query whose name is one, as it was sent. A
// name counts however it is encoded or parted.
func (t Target) parameter(is func(name string) bool) string {
	for part := range strings.FieldsFuncSeq(t.query, func(r rune) bool { return r == '&' || r == '?' }) {
		name, _, _ := strings.Cut(part, "=")
		if is(decoded(name)) {
			return name
		}
	}
	return ""
}
