package threat

import (
	"fmt"
	"slices"
	"strings"
)

// Identity is who tries.
type Identity string

// The identities. Worker is what the compile makes: uid 1000, no capability,
// no_new_privs. The others nothing in the product can make: Root is uid 0
// without capabilities, Default is uid 0 with those that Docker gives unless
// told otherwise. The room must hold even then.
const (
	Worker  Identity = "worker"
	Root    Identity = "root"
	Default Identity = "default"
)

// Identities are all of them.
var Identities = []Identity{Worker, Root, Default}

// Place is where a room stands.
type Place string

// The places. Anywhere is both.
const (
	Anywhere Place = ""
	Bare     Place = "bare namespaces"
	Engines  Place = "engines"
)

// Families says over which a try is made.
type Families int

// The families: each by itself, or none that matters.
const (
	Both Families = iota
	OnlyV4
	OnlyV6
	Neither
)

// Control is how the same try fares in an ordinary place: without one, a denial
// proves nothing. NoControl says why there is none.
type Control struct {
	// Arrives: a packet comes for the try's address.
	Arrives bool
	// Asked: a name server gets the question.
	Asked bool
	// None is the reason why an ordinary place can't show anything.
	None string
}

// Try is one thing that must not work, or must not lead where it points.
// Placeholders in Lines: see [Case].
type Try struct {
	ID    string
	Items string // of the catalogue, separated by blanks
	// Lines are probes of workshop-init, or of package attacks if Raw.
	Lines []string
	Raw   bool
	// Sees is what each line must see; Root and Default are what these see
	// if that differs.
	Sees, Root, Default string
	Families            Families
	Place               Place
	Who                 []Identity // nil: all
	Control             Control
	// Event is the kind of the event that each line is, with the try's name
	// or address; "": none is looked for.
	Event string
	// Lost: the packet goes nowhere inside the room and no rule denies it, so
	// waiting is all that is seen. The reason stands there.
	Lost string
}

// Expected is what an identity must see of each line.
func (t Try) Expected(who Identity) string {
	switch {
	case who == Root && t.Root != "":
		return t.Root
	case who == Default && t.Default != "":
		return t.Default
	}
	return t.Sees
}

// Case is a try over one family, with addresses and names of its own, by which
// packets and events are told from those of all others.
//
// Placeholders: {a} an address that nothing else uses, {h} the same as host of a
// URL or before a port; {name} a name that isn't allowed, and {sub} one below
// an allowed name; {lo}, {lh} loopback; {any} the unspecified address; {dns} a
// name server; {ok} the allowed name's address; further ones are the place's.
type Case struct {
	Try
	Name    string // ID, "/v4" or "/v6"
	Address string
	Denied  string // {name}
	Sub     string // {sub}
	values  []string
}

// patience is how long a try waits for anything to happen: longer than a denial
// may take, so that one by a timeout is told apart.
const patience = "2500ms"

// taken are addresses of the test internet with a meaning.
var taken = []int{10, 11, 22, 32, 53, 54, 66}

// Cases returns every try for each of its families.
func Cases() []Case {
	var all []Case
	number := 100
	for _, t := range Tries() {
		number++
		for slices.Contains(taken, number) {
			number++
		}
		if t.Families != OnlyV6 {
			all = append(all, newCase(t, number, 4))
		}
		if t.Families == Both || t.Families == OnlyV6 {
			all = append(all, newCase(t, number, 6))
		}
	}
	return all
}

func newCase(t Try, number, family int) Case {
	c := Case{Try: t, Name: fmt.Sprintf("%s/v%d", t.ID, family)}
	label := fmt.Sprintf("%s-v%d", t.ID, family)
	c.Denied, c.Sub = label+".evil.example.net", label+".allowed.example.org"
	c.Address = fmt.Sprintf("198.51.100.%d", number)
	host, lo, lh, any, dns, ok := c.Address, "127.0.0.1", "127.0.0.1", "0.0.0.0", "198.51.100.54", "198.51.100.10"
	if family == 6 {
		c.Address = fmt.Sprintf("2001:db8:1::%x", number)
		host, lo, lh, any, dns, ok = "["+c.Address+"]", "::1", "[::1]", "[::]", "2001:db8:1::53", "[2001:db8:1::10]"
	}
	if t.Families == Neither {
		c.Name = t.ID
	}
	c.values = []string{"{a}", c.Address, "{h}", host, "{name}", c.Denied, "{sub}", c.Sub, "{lo}", lo, "{lh}", lh, "{any}", any, "{dns}", dns, "{ok}", ok}
	return c
}

// Probes returns the lines for an identity with what it must see; values are
// the place's placeholders and what stands for them.
func (c Case) Probes(who Identity, values map[string]string) []string {
	var out []string
	for _, line := range c.Lines {
		if !strings.Contains(line, " limit=") {
			line += " limit=" + patience
		}
		out = append(out, fmt.Sprintf("%s name=%s -> %s", c.fill(line, values), c.Name, c.Expected(who)))
	}
	return out
}

// Controls returns the lines for an ordinary place, where nothing is expected
// but that a packet or question arrives.
func (c Case) Controls(values map[string]string) []string {
	var out []string
	for _, line := range c.Lines {
		out = append(out, c.fill(line, values)+" limit=150ms name="+c.Name)
	}
	return out
}

func (c Case) fill(line string, values map[string]string) string {
	pairs := slices.Clone(c.values)
	for k, v := range values {
		pairs = append(pairs, "{"+k+"}", v)
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

// In reports whether the case is for an identity in a place.
func (c Case) In(p Place, who Identity) bool {
	return (c.Place == Anywhere || c.Place == p) && (c.Who == nil || slices.Contains(c.Who, who))
}
