package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/verify"
)

// Lines of a guard whose rooms learn.
const learnedLog = `{"time":"2026-11-21T10:00:03Z","room":"room","workers":["one","two"],"kind":"tls","name":"api.example.org","address":"198.51.100.10","port":443,"protocol":"tcp","verdict":"allow","reason":"learned","suggest":"api.example.org","count":3}
{"time":"2026-11-21T10:00:01Z","room":"room","workers":["one","two"],"kind":"http","name":"api.example.org","address":"198.51.100.10","port":80,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}
{"time":"2026-11-21T10:00:04Z","room":"room","workers":["one","two"],"kind":"tcp","name":"ssh.example.org","address":"198.51.100.22","port":22,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}
{"time":"2026-11-21T10:00:04Z","room":"room","workers":["one","two"],"kind":"tcp","name":"api.example.org","address":"198.51.100.22","port":8443,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}
{"time":"2026-11-21T10:00:05Z","room":"room","workers":["one","two"],"kind":"tls","name":"has.example.org","address":"198.51.100.11","port":443,"protocol":"tcp","verdict":"allow","reason":"allowed","rule":"workshop.yaml:7","count":9}
{"time":"2026-11-21T10:00:05Z","room":"room","workers":["one","two"],"kind":"tls","name":"sub.wild.example.org","address":"198.51.100.11","port":443,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}
{"time":"2026-11-21T10:00:05Z","room":"room-own","workers":["own"],"kind":"tls","name":"sub.wild.example.org","address":"198.51.100.11","port":443,"protocol":"tcp","verdict":"allow","reason":"learned","count":2}
{"time":"2026-11-21T10:00:06Z","room":"room","workers":["one","two"],"kind":"tls","name":"closed.example.org","address":"198.51.100.11","port":443,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}
{"time":"2026-11-21T10:00:07Z","room":"room","workers":["one","two"],"kind":"tcp","address":"198.51.100.66","port":9000,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}
{"time":"2026-11-21T10:00:08Z","room":"room","workers":["one","two"],"kind":"tls","name":"a b\n- evil.example.net","address":"198.51.100.66","port":443,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}
{"time":"2026-11-21T10:00:08Z","room":"room","workers":["one","two"],"kind":"tls","name":"*.example.net","address":"198.51.100.66","port":443,"protocol":"tcp","verdict":"allow","reason":"learned","count":1}
{"time":"2026-11-21T10:00:09Z","room":"room","workers":["one","two"],"kind":"dns","name":"asked.example.org","port":53,"protocol":"dns","verdict":"deny","reason":"not-allowed","suggest":"asked.example.org","count":2}
{"time":"2026-11-21T10:00:09Z","room":"room","workers":["one","two"],"kind":"dns","name":"tunnel.example.org","port":53,"protocol":"dns","verdict":"deny","reason":"not-allowed","suggest":"tunnel.example.org","count":1}
{"time":"2026-11-21T10:00:09Z","room":"room","workers":["one","two"],"kind":"proxy","name":"tunnel.example.org","port":22,"protocol":"tcp","verdict":"deny","reason":"not-allowed","suggest":"tunnel.example.org:22","count":1}
{"time":"2026-11-21T10:00:09Z","room":"room","workers":["one","two"],"kind":"tls","name":"inner.example.org","address":"10.1.2.3","port":443,"protocol":"tcp","verdict":"deny","reason":"private","suggest":"{host: inner.example.org, port: 443, private: true}","count":1}
{"time":"2026-11-21T10:00:09Z","room":"room","workers":["one","two"],"kind":"kernel","address":"169.254.169.254","port":80,"protocol":"tcp","verdict":"deny","reason":"metadata","count":1}
`

const learnedFile = `workshop:
  name: learned
  container:
    image: host
    network:
      mode: restricted
      allow:
        - has.example.org   # stays
        - "*.wild.example.org"
      deny: [closed.example.org]
  workers:
    - one
    - two
    - {name: own, container: {network: {allow: [has.example.org]}}}
`

func learnedSource(t *testing.T) (*Env, *Source) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("workshop.yaml", learnedFile)
	for _, name := range []string{"one", "two", "own"} {
		write("workers/"+name+".md", "---\nname: "+name+"\ndescription: does nothing\ntools: [read_file]\n---\nNothing.\n")
	}
	env := &Env{Dir: dir, Home: dir, Lookup: func(string) (string, bool) { return "", false }}
	s, err := env.Read(t.Context(), filepath.Join(dir, "workshop.yaml"))
	if err != nil || s.Workshop == nil {
		t.Fatal(err, s.Diagnostics)
	}
	return env, s
}

func suggestFrom(t *testing.T, s *Source, log string, o SuggestRequest) *Suggestions {
	t.Helper()
	requests := newDialRequests(o)
	readLog(t, log, 1000, func(raw []byte, l events.Line) error { return requests.add(raw, l) })
	return requests.suggest(s)
}

// That older lines are missing is said only of a log that begins long after what runs.
func TestBeginsLate(t *testing.T) {
	began := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	running := func(after ...time.Duration) (seen engine.Observed) {
		for _, d := range after {
			seen.Containers = append(seen.Containers, engine.Container{State: "running", Started: began.Add(d)})
		}
		return seen
	}
	for _, c := range []struct {
		name  string
		seen  engine.Observed
		first time.Duration
		want  bool
	}{
		{"of the first up", running(0, time.Second), 2 * time.Second, false},
		{"lines were thrown away", running(0, time.Second), time.Hour, true},
		{"the guard was replaced", running(0, time.Hour), time.Hour, true},
		{"the guard was started again, with its log", running(0, time.Hour), 0, false},
		{"a worker is new", running(0, time.Hour), time.Second, false},
		{"nothing runs", engine.Observed{Containers: []engine.Container{{State: "exited", Started: began}}}, time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := beginsLate(c.seen, began.Add(c.first)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// The smallest list: exact names, 80 and 443 together, no line that the file
// covers or denies, nothing that isn't a name, and never a private one by itself.
func TestSuggest(t *testing.T) {
	_, s := learnedSource(t)
	for _, c := range []struct {
		name string
		o    SuggestRequest
		want string
		out  LeftOut
	}{
		{"learned", SuggestRequest{}, `api.example.org # one and two: 4 times
api.example.org:8443 # one and two: once
ssh.example.org:22 # one and two: once
sub.wild.example.org:443 # one, own and two: 3 times`, LeftOut{Denied: 1, Nameless: 3}},
		{"denied too", SuggestRequest{Denied: true}, `api.example.org # one and two: 4 times
api.example.org:8443 # one and two: once
asked.example.org # only looked up: opens 80 and 443; for SSH write asked.example.org:22; one and two: refused 2 times
ssh.example.org:22 # one and two: once
sub.wild.example.org:443 # one, own and two: 3 times
tunnel.example.org:22 # one and two: refused once`, LeftOut{Denied: 1, Nameless: 3, Other: 2}},
		{"one worker", SuggestRequest{Worker: "own"}, `sub.wild.example.org:443 # own: 2 times`, LeftOut{}},
	} {
		got := suggestFrom(t, s, learnedLog, c.o)
		lines := lineTexts(got.Allow)
		if strings.Join(lines, "\n") != c.want || got.LeftOut != c.out {
			t.Errorf("%s: left out %+v\n%s", c.name, got.LeftOut, strings.Join(lines, "\n"))
		}
	}
	if got := suggestFrom(t, s, learnedLog, SuggestRequest{}); !got.Refused {
		t.Error("nothing says that --denied would have more")
	}
	if got := suggestFrom(t, s, learnedLog, SuggestRequest{Worker: "own"}); got.Refused {
		t.Error("what others were refused is told of own")
	}
	if first := suggestFrom(t, s, learnedLog, SuggestRequest{}).Allow[0].First; first.Second() != 1 {
		t.Errorf("first seen %v", first)
	}
}

// What a worker asked for while `firewall explain` tried the same isn't lost unsaid: it
// may have been either of them.
func TestSuggestWhileExplained(t *testing.T) {
	_, s := learnedSource(t)
	explained := strings.ReplaceAll(learnedLog, `"verdict"`, `"explained":true,"verdict"`)
	got := suggestFrom(t, s, explained, SuggestRequest{})
	if want := []string{"api.example.org", "api.example.org:8443", "ssh.example.org:22", "sub.wild.example.org:443"}; len(got.Allow) != 0 || !slices.Equal(got.Tried, want) {
		t.Errorf("suggested %+v, tried %q, want none and %q", got.Allow, got.Tried, want)
	}
	// What verify alone can ask for isn't what a worker may need.
	ofVerify := strings.ReplaceAll(explained, "ssh.example.org", verify.NewID()+"-one.example.net")
	if got, want := suggestFrom(t, s, ofVerify, SuggestRequest{}), []string{"api.example.org", "api.example.org:8443", "sub.wild.example.org:443"}; len(got.Allow) != 0 || !slices.Equal(got.Tried, want) {
		t.Errorf("of verify: suggested %+v, tried %q, want none and %q", got.Allow, got.Tried, want)
	}
	if got = suggestFrom(t, s, explained+learnedLog, SuggestRequest{}); len(got.Allow) != 4 || got.Tried != nil {
		t.Errorf("asked for again: suggested %+v, tried %q", got.Allow, got.Tried)
	}
}

// Where nothing is suggested, it is said what a worker needs so that it can ask: what is
// to be written for one without a network is valid.
func TestHowToAsk(t *testing.T) {
	const line = "`network: {mode: restricted, allow: [HOST]}`"
	for _, c := range []struct {
		name, workshop, own, worker, want string
		fixed                             [2]string // the networks of the workshop and of one, as is said
	}{
		{"restricted", "{mode: restricted, allow: [a.example.org]}", "{mode: restricted}", "one", "`workshop up --learn` lets workers ask", [2]string{}},
		{"of all", "{mode: restricted, allow: [a.example.org]}", "none", "", "`workshop up --learn` lets workers ask", [2]string{}},
		{"no network of its own", "{mode: restricted, allow: [a.example.org]}", "none", "one", "one has no network; to give it one, write " + line + " for one in workshop.yaml, and HOST in the workshop's `allow`, too",
			[2]string{"{mode: restricted, allow: [a.example.org, b.example.org]}", "{mode: restricted, allow: [b.example.org]}"}},
		{"no network, in an open workshop", "open", "none", "one", "one has no network; to give it one, write " + line + " for one in workshop.yaml", [2]string{"open", "{mode: restricted, allow: [b.example.org]}"}},
		{"none has a network", "none", "none", "one", "one has no network; to give it one, write " + line + " for the workshop's container in workshop.yaml; a worker's own only narrows it", [2]string{"{mode: restricted, allow: [b.example.org]}", "{}"}},
		{"of all, without a network", "none", "none", "", "no worker learns: that needs `network: {mode: restricted}`", [2]string{}},
		{"open", "open", "open", "one", "one reaches every public name (`network: open`)", [2]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			env := &Env{Dir: dir, Home: dir, Lookup: func(string) (string, bool) { return "", false }}
			read := func(whole, own string) *Source {
				t.Helper()
				if whole == "none" {
					own = "none"
				}
				two := own // has a network where the workshop has one
				if whole != "none" {
					two = whole
				}
				if err := os.CopyFS(filepath.Join(dir, whole+own), fstest.MapFS{
					"workshop.yaml":  {Data: fmt.Appendf(nil, "workshop:\n  name: x\n  container: {image: host, network: %s}\n  workers:\n    - {name: one, container: {network: %s}}\n    - {name: two, container: {network: %s}}\n", whole, own, two)},
					"workers/one.md": {Data: []byte("---\nname: one\ntools: Bash\n---\nx\n")}, "workers/two.md": {Data: []byte("---\nname: two\ntools: Bash\n---\nx\n")},
				}); err != nil {
					t.Fatal(err)
				}
				s, err := env.Read(t.Context(), filepath.Join(dir, whole+own, "workshop.yaml"))
				if err != nil || s.Workshop == nil {
					t.Fatal(err, s.Diagnostics)
				}
				return s
			}
			s := &Suggestions{source: read(c.workshop, c.own), request: SuggestRequest{Worker: c.worker}}
			if got := s.HowToAsk("workshop.yaml"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.fixed[0] != "" {
				read(c.fixed[0], c.fixed[1])
			}
		})
	}
}

// deniedLine is a denial of a name to the workers one and two; port 0: of its look-up.
func deniedLine(name string, port int, explained bool) string {
	kind, protocol, line := "proxy", "tcp", name
	switch port {
	case 0:
		kind, protocol, port = "dns", "dns", 53
	case 80, 443:
	default:
		line = fmt.Sprintf("%s:%d", name, port)
	}
	return fmt.Sprintf(`{"time":"2026-11-21T10:00:03Z","room":"room","workers":["one","two"],"kind":%q,"name":%q,"port":%d,"protocol":%q,"verdict":"deny","reason":"not-allowed","suggest":%q,"explained":%t,"count":1}`+"\n", kind, name, port, protocol, line, explained)
}

// lineTexts are the lines with their comments, without dates.
func lineTexts(list []SuggestedLine) (out []string) {
	for _, l := range list {
		text, _, _ := strings.Cut(l.Comment(), ", first")
		out = append(out, l.Line+" # "+text)
	}
	return out
}

// The port of a name that was only looked up isn't known: it is a line of its own, no
// preset, and none where a line opens the name on any port.
func TestSuggestLookedUp(t *testing.T) {
	const plain = "github.com # only looked up: opens 80 and 443; for SSH write github.com:22; one and two: refused once"
	for _, c := range []struct {
		name, allow, log string
		want, tried      []string
		out              LeftOut
	}{
		{"a name of a preset", "", deniedLine("github.com", 0, false), []string{plain}, nil, LeftOut{}},
		{"and its port 22", "", deniedLine("github.com", 0, false) + deniedLine("github.com", 22, false), []string{"github.com:22 # one and two: refused once"}, nil, LeftOut{}},
		{"and a port of the preset", "", deniedLine("github.com", 0, false) + deniedLine("github.com", 443, false), []string{"preset: github # github.com; one and two: refused once"}, nil, LeftOut{}},
		{"and another name of the preset", "", deniedLine("github.com", 0, false) + deniedLine("api.github.com", 443, false), []string{"preset: github # api.github.com and github.com; one and two: refused 2 times"}, nil, LeftOut{}},
		{"in the file with another port", "github.com:22", deniedLine("github.com", 0, false), nil, nil, LeftOut{Covered: 1}},
		{"a wildcard with another port", `{host: "*.example.net", port: 22}`, deniedLine("git.example.net", 0, false), nil, nil, LeftOut{Covered: 1}},
		{"explain tried the same", "", deniedLine("github.com", 0, false) + deniedLine("github.com", 443, true), []string{plain}, nil, LeftOut{}},
		{"explain tried another name of the preset", "", deniedLine("github.com", 443, false) + deniedLine("api.github.com", 443, true) + deniedLine("api.github.com", 0, true), []string{"preset: github # github.com; one and two: refused once"}, nil, LeftOut{}},
		{"explain tried presets that are suggested", "", deniedLine("github.com", 443, false) + deniedLine("registry.npmjs.org", 443, false) + deniedLine("github.com", 443, true) + deniedLine("registry.npmjs.org", 443, true) + deniedLine("pypi.org", 443, true),
			[]string{"preset: github # github.com; one and two: refused once", "preset: npm # registry.npmjs.org; one and two: refused once"}, []string{"preset: pypi"}, LeftOut{}},
		{"explain alone", "", deniedLine("github.com", 443, true) + deniedLine("ssh.example.net", 0, true), nil, []string{"preset: github", "ssh.example.net"}, LeftOut{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, s := learnedSource(t)
			if c.allow != "" {
				text := strings.Replace(learnedFile, "- has.example.org", "- "+c.allow+"\n        - has.example.org", 1)
				if err := os.WriteFile(s.Path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				var err error
				if s, err = env.Read(t.Context(), s.Path); err != nil || s.Workshop == nil {
					t.Fatal(err, s.Diagnostics)
				}
			}
			got := suggestFrom(t, s, c.log, SuggestRequest{Denied: true})
			if lines := lineTexts(got.Allow); !slices.Equal(lines, c.want) || !slices.Equal(got.Tried, c.tried) || got.LeftOut != c.out {
				t.Errorf("tried %q, left out %+v, lines\n%s", got.Tried, got.LeftOut, strings.Join(lines, "\n"))
			}
		})
	}
}

// --write puts a line where those who asked go by it, keeps what stands in the
// file, and the result is a valid workshop that has them.
func TestSuggestWrite(t *testing.T) {
	env, s := learnedSource(t)
	found := suggestFrom(t, s, learnedLog, SuggestRequest{})
	done, err := env.WriteSuggested(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"has.example.org   # stays\n", "        - api.example.org # one and two: 4 times, first ", "        - ssh.example.org:22", "allow: [has.example.org, sub.wild.example.org:443]"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), "sub.wild.example.org"); n != 1 {
		t.Errorf("what the workshop covers is written %d times:\n%s", n, text)
	}
	fresh, err := env.Read(t.Context(), s.Path)
	if err != nil || fresh.Workshop == nil {
		t.Fatal(err, fresh.Diagnostics)
	}
	if left := suggestFrom(t, fresh, learnedLog, SuggestRequest{}); len(left.Allow) != 0 {
		t.Errorf("still suggested: %+v", left.Allow)
	}
	if !strings.Contains(strings.Join(done.Lines, "\n"), "+") {
		t.Errorf("no diff: %q", done.Lines)
	}
}

// A name of a preset is the preset's line, as in the hint about its refusal, also as it
// is written; what was looked up and has no address is listed.
func TestSuggestPreset(t *testing.T) {
	env, s := learnedSource(t)
	line := func(verdict, reason, name string, port int) string {
		return fmt.Sprintf(`{"time":"2026-11-21T10:00:03Z","room":"room","workers":["one","two"],"kind":"tls","name":%q,"port":%d,"protocol":"tcp","verdict":%q,"reason":%q,"count":1}`+"\n", name, port, verdict, reason)
	}
	log := line("allow", "learned", "pypi.org", 443) + line("allow", "learned", "files.pythonhosted.org", 443) +
		line("allow", "learned", "pypi.org", 8443) + // not the preset's
		line("deny", "not-allowed", "registry.npmjs.org", 443) + // one of three
		line("allow", "learned", "registry.yarnpkg.com", 80) + // the preset has 443
		line("note", "unresolved", "gone.example.org", 443) +
		line("note", "unresolved", "pypi.org", 443) // it answered later
	log = strings.ReplaceAll(log, `"reason":"not-allowed"`, `"reason":"not-allowed","suggest":"registry.npmjs.org"`)
	found := suggestFrom(t, s, log, SuggestRequest{Denied: true})
	lines := lineTexts(found.Allow)
	want := []string{
		"preset: npm # registry.npmjs.org; one and two: refused once",
		"preset: pypi # files.pythonhosted.org and pypi.org; one and two: 2 times",
		"pypi.org:8443 # one and two: once",
		"registry.yarnpkg.com:80 # one and two: once",
	}
	if !slices.Equal(lines, want) || !slices.Equal(found.InVain, []string{"gone.example.org"}) {
		t.Errorf("in vain %q, lines\n%s", found.InVain, strings.Join(lines, "\n"))
	}
	if _, err := env.WriteSuggested(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	fresh, err := env.Read(t.Context(), s.Path)
	if err != nil || fresh.Workshop == nil {
		t.Fatal(err, fresh.Diagnostics)
	}
	if left := suggestFrom(t, fresh, log, SuggestRequest{}); len(left.Allow) != 0 {
		t.Errorf("still suggested: %+v", left.Allow)
	}
}

// Nobody reads so many lines, so they aren't written at once.
func TestSuggestWritesNoFlood(t *testing.T) {
	env, s := learnedSource(t)
	log := ""
	for i := range maxWritten + 1 {
		log += strings.Replace(strings.SplitAfter(learnedLog, "\n")[2], "ssh.example.org", "x"+strings.Repeat("y", i%60)+strings.Repeat("z", i/60)+".example.org", 1)
	}
	before, _ := os.ReadFile(s.Path)
	if _, err := env.WriteSuggested(t.Context(), suggestFrom(t, s, log, SuggestRequest{})); err == nil {
		t.Error("written")
	}
	if after, _ := os.ReadFile(s.Path); !bytes.Equal(before, after) {
		t.Error("the file changed")
	}
}
