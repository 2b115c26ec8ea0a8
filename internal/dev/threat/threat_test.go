package threat

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// counts are how many items each letter has.
var counts = map[string]int{"D": 13, "N": 10, "T": 10, "P": 5, "L": 12, "S": 11, "K": 16, "W": 11, "F": 32, "H": 10, "C": 16}

// TestEveryItemOnce: the catalogue has each number once and in order, and an
// answer to it.
func TestEveryItemOnce(t *testing.T) {
	var want, got []string
	for _, g := range Groups {
		for n := range counts[g.Letter] {
			want = append(want, fmt.Sprintf("%s%d", g.Letter, n+1))
		}
	}
	promise := regexp.MustCompile(`^B([1-9]|1[0-2]|2[0-9]|3[0-6]|4[0-7]|60)$`)
	for _, i := range Items() {
		got = append(got, i.ID)
		if i.Attack == "" || i.Answer == "" || len(i.Promises) == 0 {
			t.Errorf("%s: attack, answer and promises must be there", i.ID)
		}
		for _, p := range i.Promises {
			if !promise.MatchString(p) {
				t.Errorf("%s: %s is no promise", i.ID, p)
			}
		}
		switch i.Status {
		case Open:
			if i.Remedy == "" {
				t.Errorf("%s is open and says nothing about what to do", i.ID)
			}
		case Gone, Closed:
			if len(i.Tests) == 0 {
				t.Errorf("%s is %s, and no test shows it", i.ID, i.Status)
			}
		default:
			t.Errorf("%s: status %q", i.ID, i.Status)
		}
	}
	if !slices.Equal(want, got) {
		t.Errorf("items %v\nwant %v", got, want)
	}
}

// noTry are items that no packet from a room can try; they have tests alone.
var noTry = map[string]string{
	"D10": "it is what name servers answer", "D11": "it is what name servers answer", "N3": "nothing tells it apart: it is open", "N5": "it is bytes of a hello, which the parser's tests have",
	"T10": "it comes from outside", "P4": "it is the guard's own way out", "P5": "it is what the guard writes", "L1": "it is about a moment", "L4": "it is about a moment", "L6": "it is about a moment",
	"K1": "it is no packet", "K2": "it is no packet", "K3": "it is no packet", "K4": "it is no packet", "K5": "it is no packet", "K6": "it is no packet", "K7": "it is no packet",
	"K8": "it is no packet", "K9": "it is no packet", "K10": "it is no packet", "K11": "it is no packet", "K12": "it is no packet", "K13": "it is no packet", "K14": "it is no packet", "K15": "it is no packet", "K16": "it comes from outside",
	"W1": "it is no packet", "W2": "it is no packet", "W3": "it is no packet", "W4": "it is no packet", "W5": "it is no packet", "W6": "it is no packet", "W7": "it is no packet", "W8": "it is no packet", "W9": "it is no packet", "W10": "it is no packet", "W11": "it is no packet",
	"F6": "it is no packet", "F7": "it is no packet", "F8": "it is no packet", "F9": "it is no packet", "S8": "it is no packet", "S9": "it is no packet",
	"F10": "it is no packet",
	"S10": "it is no packet", "S11": "it is no packet",
	"F11": "it is no packet", "F12": "it is no packet", "F13": "it is no packet",
	"F14": "it is no packet", "F15": "it is no packet", "F16": "it is no packet", "F17": "it is what a file says", "F18": "it is no packet", "F19": "it is no packet", "F20": "it is no packet", "F21": "it is no packet", "F22": "it is no packet", "F23": "it is no packet", "F24": "it is no packet", "F25": "it is no packet", "F26": "it is no packet", "F27": "it is no packet", "F28": "it is no packet", "F29": "it is no packet", "F30": "it is what a file says", "F31": "it is what a file says", "F32": "it is no packet",
	"F1": "it is no packet", "F2": "it is no packet", "F3": "it is no packet", "F4": "it is what a file says", "F5": "it is no packet",
	"H1": "it is no packet", "H2": "it is no packet", "H3": "it is no packet", "H4": "it is no packet", "H5": "it is no packet", "H6": "it is no packet", "H7": "it is no packet", "H8": "it is no packet", "H9": "it is no packet", "H10": "it is no packet",
	"C1": "it is no packet", "C2": "it is what an endpoint is sent", "C3": "it is what an endpoint is sent", "C4": "it is what an endpoint is sent", "C5": "it is what a file says", "C6": "it is what a host says", "C7": "it takes an endpoint",
	"C8": "it is about a moment", "C9": "it is no packet", "C10": "it is what an endpoint is sent", "C11": "it is open", "C12": "it is open", "C13": "it is open", "C14": "it is what an endpoint is sent", "C15": "it is no packet", "C16": "it is the guard's own way out",
	"L8": "it is about the kernel", "L9": "it is open", "L11": "it is about a moment", "L12": "it is bytes at moments, which tests have", "S5": "it takes two rooms", "S6": "a flood takes longer than a matrix may",
}

// TestTriesAndItems: tries name items that exist, and each item has a try or a
// reason to have none.
func TestTriesAndItems(t *testing.T) {
	known := map[string]bool{}
	for _, i := range Items() {
		known[i.ID] = true
		if (len(i.Tries()) == 0) != (noTry[i.ID] != "") {
			t.Errorf("%s: tries %v, listed as having none: %q", i.ID, i.Tries(), noTry[i.ID])
		}
	}
	ids := map[string]bool{}
	for _, try := range Tries() {
		if ids[try.ID] {
			t.Errorf("try %s is there twice", try.ID)
		}
		ids[try.ID] = true
		if try.Items == "" || len(try.Lines) == 0 || try.Sees == "" {
			t.Errorf("try %s: items, lines and what is seen must be there", try.ID)
		}
		for id := range strings.FieldsSeq(try.Items) {
			if !known[id] {
				t.Errorf("try %s: no item %s", try.ID, id)
			}
		}
		if (try.Control.None == "") == (!try.Control.Arrives && !try.Control.Asked) {
			t.Errorf("try %s: a control, or the reason why there is none", try.ID)
		}
	}
	addresses := map[string]string{}
	for _, c := range Cases() {
		if other := addresses[c.Address]; other != "" {
			t.Errorf("%s and %s have the same address", c.Name, other)
		}
		addresses[c.Address] = c.Name
	}
}

// TestTestsExist: every test that the catalogue names is in the tree.
func TestTestsExist(t *testing.T) {
	read := map[string]string{}
	for _, i := range Items() {
		for _, name := range i.Tests {
			dir, test, ok := strings.Cut(name, " ")
			if !ok {
				t.Fatalf("%s: %q is no test", i.ID, name)
			}
			if _, ok := read[dir]; !ok {
				read[dir] = sources(t, dir)
			}
			if !strings.Contains(read[dir], "func "+test+"(") {
				t.Errorf("%s: %s has no %s", i.ID, dir, test)
			}
		}
	}
	for _, try := range Tries() { // controls name tests too
		for _, test := range regexp.MustCompile(`\bTestB\w+`).FindAllString(try.Control.None, -1) {
			if !strings.Contains(sources(t, "e2e"), "func "+test+"(") {
				t.Errorf("%s: no %s", try.ID, test)
			}
		}
	}
}

func sources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// TestDocument: the document is what `make generate` makes of the data.
func TestDocument(t *testing.T) {
	old, err := os.ReadFile("../../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	made, err := Model(string(old))
	if err != nil {
		t.Fatal(err)
	}
	if made != string(old) {
		t.Error("docs/threat-model.md is not up to date: run make generate")
	}
	if _, err := Model("no markers"); err == nil {
		t.Error("a document without markers was accepted")
	}
}

// TestDocumentIsWhole: no attack, answer or remedy is missing in the document.
func TestDocumentIsWhole(t *testing.T) {
	model := catalogue()
	for _, i := range Items() {
		for _, part := range append([]string{i.Answer, i.Remedy}, strings.SplitN(i.Attack, ": ", 2)...) {
			if !strings.Contains(model, part) {
				t.Errorf("%s: the catalogue lacks %q", i.ID, part)
			}
		}
		if len(i.Tests) == 0 && len(i.Tries()) == 0 && i.Status != Open {
			t.Errorf("%s has no test and isn't open: the document says otherwise", i.ID)
		}
	}
}
