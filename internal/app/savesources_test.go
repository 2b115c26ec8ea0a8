package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// allow is a change that allows a host.
func allow(t *testing.T, worker, host string) RuleChange {
	t.Helper()
	o := RuleChange{Worker: worker}
	if err := o.Parse([]string{host}); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSaveForAnImport: an import gets what its file needs. No line of the project's adds to
// that, none is written or advised, and what it is said of is its publisher (B47).
func TestSaveForAnImport(t *testing.T) {
	s := newShared(t)
	s.release("v1.1.0", "  needs: {network: {mode: restricted, allow: [needed.example.org]}}\n")
	s.write("workshop.yaml", `workshop:
  name: app
  container:
    image: host
    network:
      mode: restricted
      allow: [needed.example.org]
  workers: [{name: own, tools: [], instructions: x}]
  imports:
    - {as: sast, from: '`+s.from+`', version: ^1}
  grant:
    sast: {network: {mode: restricted, allow: [needed.example.org]}}
`)
	s.lock(LockOptions{})
	before := s.read("workshop.yaml")
	publisher := "who keeps " + s.id.String() + " can"
	_, err := s.env.SaveRules(t.Context(), allow(t, "sast--scan", "more.example.org"))
	s.fails("for the import", err, CodeRefused, publisher)
	deny := RuleChange{Worker: "sast--scan", Deny: true}
	if err := deny.Parse([]string{"needed.example.org"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.env.SaveRules(t.Context(), deny)
	s.fails("deny for the import", err, CodeUsage, "`deny: [needed.example.org]` to network of grant.sast")
	if now := s.read("workshop.yaml"); now != before {
		t.Errorf("it was written:\n%s", now)
	}

	src, err := s.env.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l := src.listFor("sast--scan"); !strings.Contains(l.elsewhere, publisher) {
		t.Errorf("the advice is %q", l.elsewhere)
	}
	if l := src.listFor("own"); l.String() != "network.allow" || l.elsewhere != "" {
		t.Errorf("the project's own worker: %+v", l)
	}
	// The line for the project's worker is not the import's: it needs no consent of others.
	done, err := s.env.SaveRules(t.Context(), allow(t, "own", "more.example.org"))
	if err != nil || len(done.NotFor) > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if src, err = s.env.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	more := allow(t, "", "more.example.org").Rules
	if !coveredBy(more, src.Worker("own").Container.Network.Allow) || coveredBy(more, src.Worker("sast--scan").Container.Network.Allow) {
		t.Errorf("own %v, scan %v", src.Worker("own").Container.Network.Allow, src.Worker("sast--scan").Container.Network.Allow)
	}
}

// TestSaveForImportsThatInherit: an import whose needs and grant name no list has the
// workshop's. A line for another worker is for it, too, and that is said.
func TestSaveForImportsThatInherit(t *testing.T) {
	s := newShared(t)
	s.release("v1.1.0", "  needs: {network: {mode: restricted}}\n")
	s.write("workshop.yaml", `workshop:
  name: app
  container: {image: host, network: {mode: restricted, allow: ["${API:-api.example.org}"]}}
  workers: [{name: own, tools: [], instructions: x}]
  imports:
    - {as: sast, from: '`+s.from+`', version: ^1}
  grant:
    sast: {network: {mode: restricted}}
`)
	s.lock(LockOptions{})
	_, err := s.env.SaveRules(t.Context(), allow(t, "own", "more.example.org"))
	s.fails("for own", err, CodeUsage, "is for sast--scan too")
	_, err = s.env.SaveRules(t.Context(), allow(t, "sast--scan", "more.example.org"))
	s.fails("for the import", err, CodeUsage, "is for own too")
	if _, err = s.env.SaveRules(t.Context(), allow(t, "", "more.example.org")); err != nil {
		t.Fatalf("%v\n%s", err, s.said.String())
	}
	src, err := s.env.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "sast--scan"} {
		if !coveredBy(allow(t, "", "more.example.org").Rules, src.Worker(name).Container.Network.Allow) {
			t.Errorf("%s doesn't reach it", name)
		}
	}
}

// A worker of the base has the list that it has there, which no line of the project adds to.
func TestSaveForABasesWorker(t *testing.T) {
	s := newShared(t)
	s.release("v1.1.0", "  container: {image: 'x.example/x@sha256:"+strings.Repeat("a", 64)+"', network: {mode: restricted, allow: [base.example.org, other.example.org]}}\n  open: {network: {allow: [open.example.org]}}\n")
	text := strings.Replace(readFile(t, filepath.Join(s.repo, "workshop.yaml")), "instructions: Scan.", "instructions: Scan., container: {network: {allow: [base.example.org]}}}, {name: free, tools: [], instructions: x", 1)
	if err := os.WriteFile(filepath.Join(s.repo, "workshop.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	testutil.Git(t, s.repo, "commit", "-qam", "x")
	testutil.Git(t, s.repo, "tag", "-f", "v1.1.0")
	project := func(rest string) {
		s.write("workshop.yaml", "workshop:\n  name: app\n  extends: {from: '"+s.from+"', version: ^1}\n"+rest)
	}
	project("")
	s.lock(LockOptions{})
	_, err := s.env.SaveRules(t.Context(), allow(t, "scan", "open.example.org"))
	s.fails("its list is the base's", err, CodeRefused, "scan has a list of its own in the base, and no line here adds to that: who keeps "+s.id.String()+" can")
	_, err = s.env.SaveRules(t.Context(), allow(t, "", "open.example.org"))
	s.fails("no container", err, CodeFailed, "takes the place of the base's: write it whole below `container:`, `network: {mode: restricted, allow: [base.example.org, other.example.org, …]}`")
	deny := RuleChange{Deny: true}
	if err := deny.Parse([]string{"other.example.org"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.env.SaveRules(t.Context(), deny)
	s.fails("deny", err, CodeFailed, "`network: {deny: [other.example.org]}`: it is added to those of the base")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSaveBelowABase: what a base neither allows nor opens isn't written, and a line never
// takes the others from a worker: a list of the project's takes the place of the base's
// (B47).
func TestSaveBelowABase(t *testing.T) {
	s := newShared(t)
	s.release("v1.1.0", "  container: {network: {mode: restricted, allow: [base.example.org]}}\n  open: {workers: true, network: {allow: [open.example.org]}}\n")
	project := func(network string) {
		s.write("workshop.yaml", `workshop:
  name: app
  extends: {from: '`+s.from+`', version: ^1}
  container:
    image: host
`+network+`  workers:
    - {name: own, tools: [], instructions: x}
`)
	}
	project("")
	s.lock(LockOptions{})
	src, err := s.env.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, worker := range []string{"own", "scan"} {
		if l := src.listFor(worker); !strings.Contains(l.String(), s.id.String()+" allows or opens") {
			t.Errorf("the advice for %s is %q", worker, l)
		}
	}
	at := src.Worker("scan").Container.Network.Allow[0].Source.Range
	if text := string(src.from.text(at.Filename)); at.Filename != s.from+"/workshop.yaml" || !strings.Contains(strings.Split(text, "\n")[at.Start.Line-1], "base.example.org") {
		t.Errorf("the base's line is at %s:\n%s", at, text)
	}
	before := s.read("workshop.yaml")
	_, err = s.env.SaveRules(t.Context(), allow(t, "", "open.example.org"))
	s.fails("the base's lines would be lost", err, CodeRefused, "would no longer reach base.example.org")
	_, err = s.env.SaveRules(t.Context(), allow(t, "own", "open.example.org"))
	s.fails("the base's worker gets the line, too", err, CodeUsage, "is for scan too")
	if now := s.read("workshop.yaml"); now != before {
		t.Errorf("it was written:\n%s", now)
	}
	project("    network: {mode: restricted, allow: [base.example.org]}\n")
	_, err = s.env.SaveRules(t.Context(), allow(t, "", "closed.example.org"))
	s.fails("the base has no such line", err, CodeRefused, "the base "+s.id.String()+" neither allows nor opens closed.example.org; nothing was written")
	if _, err = s.env.SaveRules(t.Context(), allow(t, "", "open.example.org")); err != nil {
		t.Fatalf("%v\n%s", err, s.said.String())
	}
	if now := s.read("workshop.yaml"); !strings.Contains(now, "allow: [base.example.org, open.example.org]") {
		t.Errorf("it has\n%s", now)
	}
	// What is suggested, too: the line that the base has no place for is left out, and named.
	project("    network: {mode: restricted, allow: [base.example.org]}\n")
	if src, err = s.env.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := ""
	for _, name := range []string{"closed", "open"} {
		log += `{"time":"2026-11-21T10:00:03Z","room":"room","workers":["own"],"kind":"tls","name":"` + name + `.example.org","port":443,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}` + "\n"
	}
	if _, err := s.env.WriteSuggested(t.Context(), suggestFrom(t, src, log, SuggestRequest{})); err != nil {
		t.Fatalf("%v\n%s", err, s.said.String())
	}
	if now := s.read("workshop.yaml"); strings.Contains(now, "closed.example.org") || !strings.Contains(now, "open.example.org") || !strings.Contains(s.said.String(), "left out: the base "+s.id.String()+" neither allows nor opens closed.example.org") {
		t.Errorf("%s\nit has\n%s", s.said.String(), now)
	}
}

// TestUnsavable: what `--save` would refuse isn't recommended for what was allowed live. It is
// said where the line belongs, and a host that the base doesn't open comes before all else
// (B47).
func TestUnsavable(t *testing.T) {
	s := newShared(t)
	load := func(file string) *Source {
		t.Helper()
		s.write("workshop.yaml", file)
		s.lock(LockOptions{})
		src, err := s.env.Load(t.Context())
		if err != nil {
			t.Fatalf("%v\n%s", err, s.said.String())
		}
		return src
	}
	check := func(name string, src *Source, o RuleChange, want string) {
		t.Helper()
		got := s.env.unsavable(t.Context(), src, o)
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, notWritten) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		_, err := s.env.SaveRules(t.Context(), o)
		if said := s.said.String(); (err == nil) != (want == "") {
			t.Errorf("%s: --save: %v, the hint: %q\n%s", name, err, got, said)
		}
		s.said.Reset()
	}
	s.release("v1.1.0", "  needs: {network: {mode: restricted, allow: [needed.example.org]}}\n")
	imports := "workshop:\n  name: app\n  container: {image: host, network: {mode: restricted, allow: [needed.example.org]}}\n  imports: [{as: sast, from: '" + s.from + "', version: ^1}]\n  grant: {sast: {network: {mode: restricted, allow: [needed.example.org]}}}\n"
	const needs = "an import gets what its `needs` name"
	src := load(imports)
	check("an import alone", src, allow(t, "", "more.example.org"), needs)
	check("an import's worker", src, allow(t, "sast--scan", "more.example.org"), needs)
	src = load(imports + "  workers: [{name: own, tools: [], instructions: x}]\n")
	check("an import's worker", src, allow(t, "sast--scan", "more.example.org"), needs)
	check("all of them", src, allow(t, "", "more.example.org"), "")
	if _, err := s.env.SaveRules(t.Context(), allow(t, "", "another.example.org")); err != nil || !strings.Contains(s.said.String(), "not for sast--scan: "+needs) {
		t.Errorf("%v\n%s", err, s.said.String())
	}
	s.said.Reset()
	if _, err := s.env.SaveRules(t.Context(), allow(t, "sast--scan", "needed.example.org")); err != nil || !strings.Contains(s.said.String(), "is allowed already") {
		t.Errorf("%v\n%s", err, s.said.String())
	}
	src = load(imports + "  workers: [{name: own, tools: [], instructions: x}, {name: other, tools: [], instructions: x}]\n")
	check("others would have it", src, allow(t, "own", "more.example.org"), "for own alone: give the others the list that they have now")

	s.release("v2.0.0", "  container: {network: {mode: restricted, allow: [base.example.org]}}\n  open: {workers: true, network: {allow: [open.example.org]}}\n")
	base := "workshop:\n  name: app\n  extends: {from: '" + s.from + "', version: ^2}\n  container:\n    image: host\n"
	closed := "the base " + s.id.String() + " neither allows nor opens closed.example.org; who keeps it can open it: `open: {network: {allow: [closed.example.org]}}`"
	src = load(base)
	check("no list, closed", src, allow(t, "", "closed.example.org"), closed)
	check("no list, closed, for a worker", src, allow(t, "scan", "closed.example.org"), closed)
	check("no list", src, allow(t, "", "open.example.org"), "a list here takes the place of the base's: write it whole")
	deny := RuleChange{Deny: true, Rules: allow(t, "", "closed.example.org").Rules}
	src = load(base + "    network: {allow: [base.example.org]}\n")
	check("a list, closed", src, allow(t, "", "closed.example.org"), closed)
	check("denied", src, deny, "")
	check("a list", src, allow(t, "", "open.example.org"), "")

	s.release("v3.0.0", "  container: {image: 'x.example/x@sha256:"+strings.Repeat("a", 64)+"'}\n")
	src = load("workshop:\n  name: app\n  extends: {from: '" + s.from + "', version: ^3}\n")
	check("no network", src, allow(t, "", "closed.example.org"), closed)
}

// TestSaveInheritedMode: a list of the project's is edited also where the mode is its base's,
// and a deny is added to the network that is there.
func TestSaveInheritedMode(t *testing.T) {
	s := newShared(t)
	s.release("v1.1.0", "  container: {image: 'x.example/x@sha256:"+strings.Repeat("a", 64)+"', network: {mode: restricted, allow: [base.example.org, open.example.org]}}\n")
	deny := RuleChange{Deny: true}
	if err := deny.Parse([]string{"bad.example.org"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, network, change, want string }{
		{"flow", "{allow: [base.example.org]} # why\n", "allow", "{allow: [base.example.org, open.example.org]} # why\n"},
		{"block", "\n      allow:\n        - base.example.org # why\n", "allow", "\n      allow:\n        - base.example.org # why\n        - open.example.org\n"},
		{"worker", "{allow: [base.example.org]}\n", "worker", "{allow: [base.example.org, open.example.org]}\n"},
		{"deny, flow", "{allow: [base.example.org]}\n", "deny", "{allow: [base.example.org], deny: [bad.example.org]}\n"},
		{"deny, block", "\n      allow:\n        - base.example.org\n", "deny", "\n      allow:\n        - base.example.org\n      deny:\n        - bad.example.org\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head := "workshop:\n  name: app\n  extends: {from: '" + s.from + "', version: ^1}\n  container:\n    network: "
			if tt.network[0] == '\n' {
				head = strings.TrimSuffix(head, " ")
			}
			s.write("workshop.yaml", head+tt.network)
			s.lock(LockOptions{})
			change := deny
			switch tt.change {
			case "allow":
				change = allow(t, "", "open.example.org")
			case "worker":
				change = allow(t, "scan", "open.example.org")
			}
			_, err := s.env.SaveRules(t.Context(), change)
			s.fails("save", err, CodeOK, "")
			if now := s.read("workshop.yaml"); now != head+tt.want {
				t.Errorf("it has\n%s", now)
			}
		})
	}
	// What isn't written isn't said to be.
	s.write("workshop.yaml", "workshop:\n  name: app\n  extends: {from: '"+s.from+"', version: ^1}\n  container:\n    network: {allow: []}\n")
	s.lock(LockOptions{})
	s.write("workshop.yaml", "workshop:\n  name: app\n  extends: {from: '"+s.from+"', version: ^1}\n")
	s.said.Reset()
	if _, err := s.env.SaveRules(t.Context(), allow(t, "scan", "more.example.org")); err == nil || strings.Contains(s.said.String(), "the line is added") {
		t.Errorf("%v\n%s", err, s.said.String())
	}
}

// B40: what a hint gives to a worker is for its item as it stands: one pasted in its place
// would take away what narrows it.
func TestSaveHintKeepsKeys(t *testing.T) {
	s := newShared(t)
	s.write("workshop.yaml", "workshop:\n  name: app\n  container: {image: host, network: {mode: restricted, allow: [a.example.org]}}\n  workers:\n    - {name: one, tools: [], instructions: x}\n    - {name: two, tools: [read_file], instructions: x}\n")
	_, err := s.env.SaveRules(t.Context(), allow(t, "one", "b.example.org"))
	s.fails("allow", err, CodeUsage, "\n  in the container of two (line 6): network: {allow: [a.example.org]}")
	deny := RuleChange{Deny: true, Worker: "one"}
	if err := deny.Parse([]string{"a.example.org"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.env.SaveRules(t.Context(), deny)
	s.fails("deny", err, CodeUsage, "\n  in the container of one (line 5): network: {deny: [a.example.org]}")
	for _, tt := range []struct {
		name, network string // of the worker that is not meant
		want          string
	}{
		{"a deny list alone", "{deny: [bad.example.org]}", "\n  in the network of two (line 6): allow: [a.example.org]"},
		{"its mode alone", "restricted", "\n  in the container of two (line 6): network: {mode: \"restricted\", allow: [a.example.org]}"},
	} {
		s.write("workshop.yaml", "workshop:\n  name: app\n  container: {image: host, network: {mode: restricted, allow: [a.example.org]}}\n  workers:\n    - {name: one, tools: [], instructions: x}\n    - {name: two, tools: [], instructions: x, container: {network: "+tt.network+"}}\n")
		_, err = s.env.SaveRules(t.Context(), allow(t, "one", "b.example.org"))
		s.fails(tt.name, err, CodeUsage, tt.want)
	}
}

// What a hint says to write into a network leaves its deny list there.
func TestSaveHintKeepsDeny(t *testing.T) {
	s := newShared(t)
	for _, tt := range []struct{ name, network, worker, want string }{
		{"a deny list alone", "{deny: [bad.example.org]}", "", "write `mode: restricted` and `allow: [HOST]` into the workshop's network (line 5 of workshop.yaml)"},
		{"for a worker", "{deny: [bad.example.org]}", "one", "into the workshop's network (line 5 of workshop.yaml); a worker's own only narrows it"},
		{"none", "none", "", "write `network: {mode: restricted, allow: [HOST]}` for the workshop's container"},
	} {
		s.write("workshop.yaml", "workshop:\n  name: app\n  container:\n    image: host\n    network: "+tt.network+"\n  workers: [{name: one, tools: [], instructions: x}]\n")
		_, err := s.env.SaveRules(t.Context(), allow(t, tt.worker, "b.example.org"))
		s.fails(tt.name, err, CodeRefused, tt.want)
	}
	s.release("v1.1.0", "  container: {image: 'x.example/x@sha256:"+strings.Repeat("a", 64)+"', network: {mode: restricted, allow: [base.example.org, open.example.org]}}\n  open: {network: {allow: [more.example.org]}}\n")
	project := func(network string) {
		s.write("workshop.yaml", "workshop:\n  name: app\n  extends: {from: '"+s.from+"', version: ^1}\n  container:\n    network: "+network+"\n")
	}
	project("{deny: [bad.example.org]}")
	s.lock(LockOptions{})
	_, err := s.env.SaveRules(t.Context(), allow(t, "", "more.example.org"))
	s.fails("over a base", err, CodeRefused, "write it whole into network (line 5), `allow: [base.example.org, open.example.org, …]`")
	project("{deny: [bad.example.org], allow: [base.example.org, open.example.org]}")
	if _, err = s.env.SaveRules(t.Context(), allow(t, "", "more.example.org")); err != nil {
		t.Errorf("as the hint says: %v\n%s", err, s.said.String())
	}
}
