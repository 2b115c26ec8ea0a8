package git

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzBatch: a batch is sent as it was understood: read again, it is the same.
func FuzzBatch(f *testing.F) {
	f.Add([]byte(`{"operation":"upload","Operation":"download","objects":[{"oid":"` + strings.Repeat("0", 64) + `","size":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ReadBatch(bytes.NewReader(b))
		if err != nil {
			return
		}
		var plain struct {
			Operation string
			Transfers []string
		}
		if err := json.Unmarshal(x.Bytes(), &plain); err != nil || (plain.Operation == "upload") != x.Uploads() || len(plain.Transfers) != 1 {
			t.Fatalf("%s is sent as %s", b, x.Bytes())
		}
		again, err := ReadBatch(bytes.NewReader(x.Bytes()))
		if err != nil || !bytes.Equal(again.Bytes(), x.Bytes()) {
			t.Fatalf("%s, then %s: %v", x.Bytes(), again.Bytes(), err)
		}
	})
}

// FuzzAnswer: a client gets no address that change didn't see.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"objects":[{"actions":{"download":{"href":"x"},"verify":null,"other":{"href":"y","HREF":"z"}}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := ReadAnswer(bytes.NewReader(b), func(name string, a *Action) string {
			if name == "verify" {
				return "refused"
			}
			a.Href = "seen"
			return ""
		})
		if err != nil {
			return
		}
		var answer struct {
			Objects []struct {
				Actions map[string]struct{ Href string }
			}
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		for _, o := range answer.Objects {
			for name, a := range o.Actions {
				if a.Href != "seen" || name != "download" && name != "upload" {
					t.Fatalf("%s becomes %s", b, out)
				}
			}
		}
	})
}

// B60: an answer costs little more than its text, parsed and sent on.
func TestAnswerIsBounded(t *testing.T) {
	change := func(string, *Action) string { return "" }
	answer := func(object string, n int) string {
		return `{"objects":[` + strings.Repeat(object+",", n-1) + object + `]}`
	}
	for name, x := range map[string]struct {
		text string
		ok   bool
	}{
		"all that is asked for": {answer(`{"oid":"a","size":1,"actions":{"download":{"href":"https://x/","header":{"A":"b"}},"upload":{"href":"https://x/","header":{"A":"b"}},"verify":{"href":"https://x/","header":{"A":"b"}}}}`, maxBatchObjects), true},
		"more than is asked":    {answer(`{}`, maxBatchObjects+1), false},
		"very many":             {answer(`{}`, 85000), false},
		"many actions":          {`{"objects":[{"actions":{"a":{}` + strings.Repeat(`,"a":{}`, 30000) + `}}]}`, false},
		"escapes":               {`{"objects":[{"oid":"` + strings.Repeat("<", 200000) + `"}]}`, true},
		"wrong bytes":           {`{"objects":[{"oid":"` + strings.Repeat("\xff", 200000) + `"}]}`, false},
	} {
		out, err := ReadAnswer(strings.NewReader(x.text), change)
		if (err == nil) != x.ok || len(out) > maxBatchAnswer && err == nil {
			t.Errorf("%s: %d bytes become %d, %v", name, len(x.text), len(out), err)
		}
	}
}

func TestReport(t *testing.T) {
	p := Push{Commands: []Command{{Ref: "refs/heads/main", Old: one, New: two}}}
	reason := func(Command) string { return "no" }
	if Report(p, "text", reason) != nil {
		t.Error("a report that nobody asked for")
	}
	p.Capabilities = []string{"report-status"}
	plain := stream("unpack ok\n", "ng refs/heads/main no\n", "0000")
	if got := Report(p, "text", reason); !bytes.Equal(got, plain) {
		t.Errorf("%q", got)
	}
	p.Capabilities = append(p.Capabilities, "side-band-64k")
	if got, want := Report(p, "text", reason), stream("\x02text", "\x01"+string(plain), "0000"); !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMayContinue(t *testing.T) {
	probe, push, deletes := Push{}, Push{Commands: []Command{{New: one}}}, Push{Commands: []Command{{New: zero}}}
	for _, c := range []struct {
		name  string
		p     Push
		begin string
		want  bool
	}{
		{"a probe", probe, "", true}, {"a probe with more", probe, "PACK", false}, {"a push", push, "PACK", true}, {"a push without a pack", push, "", false},
		{"a push with another list", push, "0094", false}, {"a cut pack", push, "PAC", false}, {"a delete", deletes, "", true}, {"a delete with a pack", deletes, "PACK", true},
	} {
		if err := c.p.MayContinue([]byte(c.begin)); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
