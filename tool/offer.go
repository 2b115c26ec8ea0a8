package tool

import "slices"

// OfferError says what is wrong with an entry of a worker's tools.
type OfferError struct {
	Offer   Offer
	Message string // one line without the entry before it: `has a star in "l*"`
	Hint    string // what to write instead
}

func (e *OfferError) Error() string { return e.Offer.String() + " " + e.Message + "; " + e.Hint }

// CheckOffer returns what is wrong with an entry, as an *[OfferError]: a name that
// is not a tool's, a limit that the tool doesn't know or that can't be read.
// It is nil for a good one. What it refuses allows nothing ([Grant.Check]).
//
//	shell(git:*)                  argv that begins with git; shell(git *) is the same
//	shell(git log:*)              argv that begins with git, log
//	shell(npm run test)           exactly this argv
//	fetch_url(domain:example.org) that host; also *.example.org and **.example.org, as in network.allow
func CheckOffer(o Offer) error {
	var bad *OfferError
	switch o.Name {
	case Shell:
		if o.Limit != "" {
			_, bad = parseCommand(o.Limit)
		}
	case FetchURL:
		if o.Limit != "" {
			_, bad = parseDomain(o.Limit)
		}
	case ReadFile, WriteFile, EditFile, ListFiles, SearchFiles:
		if o.Limit != "" {
			bad = &OfferError{Message: "has a limit, but its boundary is what is mounted", Hint: "write " + o.Name + ", and mount what the worker may use"}
		}
	default:
		_, _, mcp := SplitMCP(o.Name)
		switch {
		case !mcp:
			bad = &OfferError{Message: "is not a tool", Hint: "tools are read_file, write_file, edit_file, list_files, search_files, shell, fetch_url, mcp__SERVER and mcp__SERVER__TOOL"}
		case o.Limit != "":
			bad = &OfferError{Message: "has a limit, which tools of an MCP server don't have", Hint: "write " + o.Name}
		}
	}
	if bad == nil {
		return nil
	}
	bad.Offer = o
	return bad
}

// Excess returns the offers of a delegate that none of its caller's covers (B40):
// the name must be covered, and the limit be within the caller's.
func Excess(delegate, caller []Offer) []Offer {
	var out []Offer
	for _, d := range delegate {
		if !slices.ContainsFunc(caller, func(c Offer) bool { return c.covers(d) }) {
			out = append(out, d)
		}
	}
	return out
}

func (o Offer) covers(d Offer) bool {
	if !covers(o.Name, d.Name) {
		return false
	}
	if o.Limit == "" {
		return true
	}
	switch o.Name {
	case Shell:
		a, bad := parseCommand(o.Limit)
		b, worse := parseCommand(d.Limit)
		return bad == nil && worse == nil && a.covers(b)
	case FetchURL:
		a, bad := parseDomain(o.Limit)
		b, worse := parseDomain(d.Limit)
		return bad == nil && worse == nil && a.Covers(b)
	}
	return false
}
