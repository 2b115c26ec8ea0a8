//go:build linux

package probe

// Run carries out one try with its positional arguments and options, and returns the
// result in a word, with a detail for people. opts["limit"] is always set.
type Run func(words []string, opts map[string]string) (seen, detail string)

// added are the kinds of [Add].
var added []probe

// Add adds a kind of try for a program that links this package and tries what
// workshop-init should not be able to, such as crafted packets. Call it before [Main].
// least is the least number of positional arguments.
func Add(name, usage, tells string, least int, run Run) {
	added = append(added, probe{name, usage, tells, least, func(a args) (string, string) {
		a.opts["limit"] = a.limit.String()
		return run(a.pos, a.opts)
	}})
}

// Seen returns the word for an error: "ok" for nil, an errno's name, or "ERROR".
func Seen(err error) (seen, detail string) { return seenOf(err) }
