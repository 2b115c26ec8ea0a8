package threat

import "strings"

// Status is what became of an attack.
type Status string

// The statuses. Gone: there is nothing that it could turn against. Closed: a
// defence stands in its way, and tests fail without it. Open: not closed, or
// not fully; the remedy says what a user can do.
const (
	Gone   Status = "gone"
	Closed Status = "closed"
	Open   Status = "open"
)

// Item is one attack of the catalogue. The numbers are those of the design's
// reference on egress control: D names, N name against address, T transport,
// P proxy, L lifecycle, S what is shared; K the container, W tools in a worker,
// F a repository's files, H what the host runs afterwards and C credentials are
// our own.
type Item struct {
	ID     string
	Attack string
	// Fell are products that were or are open to it, with where it is written.
	Fell   []string
	Status Status
	// Answer is why it is gone, what closes it, or why it is open.
	Answer string
	// Remedy is what a user can do about what remains; an open item has one.
	Remedy string
	// Promises are numbers of the boundary (B1 to B60).
	Promises []string
	// Tests show it: "internal/guard TestTLS". The matrix' tries, which name
	// the items themselves, come on top: see [Item.Tries].
	Tests []string
}

// Items is the whole catalogue, in order.
func Items() []Item {
	var all []Item
	for _, group := range [][]Item{nameItems, addressItems, transportItems, proxyItems, lifeItems, sharedItems, kernelItems, toolItems, fileItems, hostItems, credentialItems} {
		all = append(all, group...)
	}
	return all
}

// Groups are the headings of the catalogue, by the first letter of the IDs.
var Groups = []struct{ Letter, Title string }{
	{"D", "Names (DNS)"},
	{"N", "Name against address"},
	{"T", "Transport and addresses"},
	{"P", "The proxy"},
	{"L", "Start, crash, repair"},
	{"S", "What workers share"},
	{"K", "Out of the container"},
	{"W", "Tools in a worker"},
	{"F", "Files of a repository"},
	{"H", "What the host runs afterwards"},
	{"C", "Credentials"},
}

// Tries returns the IDs of the tries that belong to the item.
func (i Item) Tries() []string {
	var out []string
	for _, t := range Tries() {
		for id := range strings.FieldsSeq(t.Items) {
			if id == i.ID {
				out = append(out, t.ID)
			}
		}
	}
	return out
}
