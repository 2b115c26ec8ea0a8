package diff

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/callrule"
	"github.com/llmdo/workshop/workshop"
)

// random is a made-up workshop.yaml with one worker, as lists of lines, so that it can
// be changed line by line.
type random struct {
	mode                  string
	allow, deny, mounts   []string
	secrets, tools, rules []string
	ports, env            []string
	fallback              string // approvals.default
	memory                int
}

var (
	someHosts = []string{"a.example.org", "b.example.org", "x.a.example.org", "\"*.example.org\"", "\"**.example.org\"", "\"**.a.example.org\"", "dns.nextdns.io", "\"**.nextdns.io\"", "printer.local", "\"**.printer.local\"", "db.internal", "${HOST_A}", "${HOST_B}"}
	somePorts = []string{"", "443", "80", "22", "[80, 443]", "400-500"}
	someCIDRs = []string{"10.0.0.0/8", "10.1.0.0/16", "10.1.0.0/17", "10.1.128.0/17", "198.51.100.0/24", "198.51.100.7/32"}
	someDirs  = []string{"./", "./a", "./a/b", "./a/b/c", "./d", "${DIR}"}
	someAt    = []string{"/w", "/w/a", "/w/b", "/w/a/b", "/x"}
	someTools = []string{"read_file", "write_file", "shell", "\"shell(git:*)\"", "\"shell(git log:*)\"", "fetch_url", "\"fetch_url(domain:a.example.org)\""}
	someCalls = []string{"git", "git log", "git push", "go", ""}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (w *random) line(r *rand.Rand, deny bool) string {
	var keys []string
	if r.IntN(4) == 0 {
		keys = append(keys, "cidr: "+pick(r, someCIDRs))
	} else {
		keys = append(keys, "host: "+pick(r, someHosts))
		if !deny && r.IntN(5) == 0 {
			keys = append(keys, "private: true")
		}
	}
	if strings.Contains(keys[0], "${") {
		keys[0] = strings.Replace(keys[0], ": ${", ": \"${", 1) + "\""
	}
	if p := pick(r, somePorts); p != "" {
		keys = append(keys, "port: "+p)
	}
	if !deny && r.IntN(8) == 0 {
		keys = append(keys, fmt.Sprintf("upload: %dM/h", 1+r.IntN(3)))
	}
	if !deny && r.IntN(10) == 0 {
		keys = append(keys, "ech: allow")
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

func (w *random) mount(r *rand.Rand, target string) string {
	text := fmt.Sprintf("{source: %q, target: %s", pick(r, someDirs), target)
	switch r.IntN(5) {
	case 0, 1:
		text += ", mode: rw"
	case 2:
		text += fmt.Sprintf(", exclude: [%s]", pick(r, []string{"b", "\"**/c\"", "\"b/*\"", "a, b"}))
	}
	return text + "}"
}

func (w *random) rule(r *rand.Rand) string {
	approval := pick(r, []string{"auto", "ask", "deny"})
	switch r.IntN(3) {
	case 0:
		return fmt.Sprintf("{tool: %s, approval: %s}", pick(r, []string{"shell", "read_file", "\"*\""}), approval)
	default:
		if call := pick(r, someCalls); call != "" {
			return fmt.Sprintf("{tool: shell, match: %s, approval: %s}", call, approval)
		}
		return fmt.Sprintf("{tool: write_file, approval: %s}", approval)
	}
}

// make is a whole file.
func newRandom(r *rand.Rand) *random {
	w := &random{mode: pick(r, []string{"none", "restricted", "restricted", "restricted", "open"}), memory: 1 + r.IntN(3), fallback: pick(r, []string{"auto", "ask", "ask", "deny"})}
	for range r.IntN(4) {
		w.allow = append(w.allow, w.line(r, false))
	}
	for range r.IntN(3) {
		w.deny = append(w.deny, w.line(r, true))
	}
	for _, at := range someAt {
		if r.IntN(3) == 0 {
			w.mounts = append(w.mounts, w.mount(r, at))
		}
	}
	for range r.IntN(4) {
		w.rules = append(w.rules, w.rule(r))
	}
	for _, s := range []string{"A", "B", "C"} {
		if r.IntN(3) == 0 {
			w.secrets = append(w.secrets, s)
		}
	}
	for _, s := range someTools {
		if r.IntN(4) == 0 {
			w.tools = append(w.tools, s)
		}
	}
	for _, s := range []string{"\"8080:8080\"", "\"198.51.100.7:8081:8081\"", "\"8082:8081\""} {
		if r.IntN(4) == 0 {
			w.ports = append(w.ports, s)
		}
	}
	for _, s := range []string{"A: x", "B: \"${HOST_A}\"", "C: \"${HOST_B}\""} {
		if r.IntN(3) == 0 {
			w.env = append(w.env, s)
		}
	}
	return w
}

// change makes one random edit.
func (w *random) change(r *rand.Rand) {
	list := pick(r, []*[]string{&w.allow, &w.allow, &w.deny, &w.mounts, &w.mounts, &w.rules, &w.secrets, &w.tools, &w.ports, &w.env})
	fresh := newRandom(r)
	from := map[*[]string]*[]string{&w.allow: &fresh.allow, &w.deny: &fresh.deny, &w.mounts: &fresh.mounts, &w.rules: &fresh.rules, &w.secrets: &fresh.secrets, &w.tools: &fresh.tools, &w.ports: &fresh.ports, &w.env: &fresh.env}[list]
	switch n := r.IntN(6); {
	case n == 0:
		w.mode, w.memory, w.fallback = pick(r, []string{w.mode, fresh.mode}), fresh.memory, pick(r, []string{w.fallback, fresh.fallback})
	case n < 3 && len(*list) > 0:
		i := r.IntN(len(*list))
		*list = slices.Delete(slices.Clone(*list), i, i+1)
	case len(*from) > 0:
		x := pick(r, *from)
		i := r.IntN(len(*list) + 1)
		*list = slices.Insert(slices.Clone(*list), i, x)
	}
}

// narrow makes one edit that grants less, or nothing else.
func (w *random) narrow(r *rand.Rand) {
	drop := func(list *[]string) {
		if len(*list) > 0 {
			i := r.IntN(len(*list))
			*list = slices.Delete(slices.Clone(*list), i, i+1)
		}
	}
	switch r.IntN(10) {
	case 0: // a line with a budget keeps a wider one from sending more
		if i := r.IntN(len(w.allow) + 1); i < len(w.allow) && !strings.Contains(w.allow[i], "upload") {
			// nor of what a wider one opens
			if rest := slices.Delete(slices.Clone(w.allow), i, i+1); !strings.Contains(strings.Join(rest, ""), "private") && !strings.Contains(strings.Join(rest, ""), "ech") {
				w.allow = rest
			}
		}
	case 1:
		w.deny = append(slices.Clone(w.deny), w.line(r, true))
	case 2:
		if w.mode == "open" && !strings.Contains(strings.Join(w.allow, ""), "upload") {
			w.mode = "restricted"
		} else if w.mode == "restricted" {
			w.mode = "none"
		}
	case 3:
		w.memory = 1
	case 4:
		drop(&w.secrets)
	case 5:
		drop(&w.tools)
	case 6:
		drop(&w.ports)
	case 7:
		for i, m := range w.mounts {
			if strings.Contains(m, "mode: rw") {
				w.mounts = slices.Clone(w.mounts)
				w.mounts[i] = strings.Replace(m, ", mode: rw", "", 1)
				break
			}
		}
	case 8: // of mounts that lie over no other one
		if i := slices.IndexFunc(w.mounts, func(m string) bool { return strings.Contains(m, "target: /x") }); i >= 0 {
			w.mounts = slices.Delete(slices.Clone(w.mounts), i, i+1)
		}
	case 9:
		for i, x := range w.rules {
			if strings.Contains(x, "approval: auto") {
				w.rules = slices.Clone(w.rules)
				w.rules[i] = strings.Replace(x, "auto", "ask", 1)
				break
			}
		}
	}
}

// text is the file; mounts, secrets and tools are taken once.
func (w *random) text() string {
	var b strings.Builder
	allow := w.allow
	if w.mode == "none" {
		allow = nil
	}
	fmt.Fprintf(&b, "workshop:\n  name: w\n  container:\n    image: i:1\n    network: {mode: %s, allow: [%s], deny: [%s]}\n", w.mode, strings.Join(allow, ", "), strings.Join(w.deny, ", "))
	seen := map[string]bool{}
	once := func(key, item string) bool {
		was := seen[key+item]
		seen[key+item] = true
		return !was
	}
	b.WriteString("    mounts:\n")
	for _, m := range w.mounts {
		if at := strings.FieldsFunc(m[strings.Index(m, "target: "):], func(r rune) bool { return r == ',' || r == '}' })[0]; once("at", at) {
			b.WriteString("      - " + m + "\n")
		}
	}
	fmt.Fprintf(&b, "    resources: {memory: %dG}\n    env: {", w.memory)
	for _, s := range w.env {
		if once("env", s) {
			b.WriteString(s + ", ")
		}
	}
	b.WriteString("}\n    secrets: [{name: a, env: A}, {name: b, env: B}, {name: c, env: C}]\n  workers:\n    - name: a\n      tools: [")
	for _, s := range w.tools {
		if once("tool", s) {
			b.WriteString(s + ", ")
		}
	}
	b.WriteString("]\n      container: {secrets: [")
	for _, s := range w.secrets {
		if once("secret", s) {
			b.WriteString(strings.ToLower(s) + ", ")
		}
	}
	b.WriteString("]")
	if w.mode != "none" {
		b.WriteString(", ports: [")
		for _, s := range w.ports {
			if once("port", s[len(s)-5:]) {
				b.WriteString(s + ", ")
			}
		}
		b.WriteString("]")
	}
	fmt.Fprintf(&b, "}\n  approvals: {default: %s, rules: [%s]}\n", w.fallback, strings.Join(w.rules, ", "))
	return strings.ReplaceAll(b.String(), "mounts:\n    res", "mounts: []\n    res")
}

// grantsOf lists what a side grants, as single facts, by the surface that must have a
// row for each that is new: by the matcher, and by a model of its own for the rest.
func grantsOf(w *workshop.Workshop) map[string]string {
	out := map[string]string{}
	k := &w.Workers[0]
	n := &k.Container.Network
	m := firewall.RoomPolicy{Mode: n.Mode.V, Allow: n.Allow, Deny: n.Deny}.Compile()
	for _, port := range []uint16{22, 80, 443, 450, 8080} {
		for _, host := range []string{"a.example.org", "b.example.org", "c.example.org", "x.a.example.org", "y.a.example.org", "z.y.a.example.org", "dns.nextdns.io", "a.dns.nextdns.io", "printer.local", "x.printer.local", "db.internal", "printer", "example.com"} {
			name, err := firewall.ParseName(host)
			if err != nil {
				panic(err)
			}
			d := m.Name(name, port)
			for _, addr := range []string{"198.51.100.7", "10.1.2.3", "10.1.200.3", "10.9.9.9"} {
				if m.Dial(d, netip.MustParseAddr(addr), port).Allowed {
					out[fmt.Sprintf("%s:%d at %s", host, port, addr)] = "network"
				}
			}
		}
		for _, addr := range []string{"198.51.100.7", "198.51.100.8", "10.1.2.3", "10.1.200.3", "10.9.9.9", "8.8.8.8"} {
			if m.Addr(netip.MustParseAddr(addr), port).Allowed {
				out[fmt.Sprintf("%s:%d", addr, port)] = "network"
			}
		}
	}
	mounts := k.Container.Mounts
	for _, p := range []string{"a", "a/b", "a/b/c", "a/b/c/f", "a/f", "d", "d/f", "f"} {
		for i := range mounts {
			x := &mounts[i]
			rel, ok := strings.CutPrefix("./"+p+"/", strings.TrimSuffix("./"+path.Clean(x.Source.V), "/.")+"/")
			if !ok || x.Source.Source.Template != "" {
				continue
			}
			rel = strings.TrimSuffix(rel, "/")
			if workshop.MountAt(mounts, path.Join(x.Target.V, rel)) != x || excluded(x.Exclude, rel) {
				continue
			}
			out["reads "+p] = "mounts"
			if x.ReadWrite {
				out["writes "+p] = "mounts"
			}
		}
	}
	for _, s := range k.Container.Secrets {
		out["secret "+s.Env] = "secrets"
	}
	for i := range 4 {
		if k.Container.Resources.Memory.V >= workshop.Size(i)<<30 {
			out[fmt.Sprintf("memory %dG", i)] = "resources.memory"
		}
	}
	for _, p := range k.Container.Ports {
		out[fmt.Sprintf("port %d", p.Target.V)] = "ports" // for the machine itself
		if p.Host.V != "127.0.0.1" {
			out[fmt.Sprintf("port %d on %s", p.Target.V, p.Host.V)] = "ports"
		}
	}
	for _, v := range k.Container.Env {
		for _, name := range workshop.VariablesIn(v.Source.Template) {
			out["variable "+name] = "env"
		}
	}
	for _, t := range k.Definition.Tools {
		out["tool "+t.Name] = "tools"
	}
	calls := []callrule.Call{{Tool: "read_file"}, {Tool: "write_file"}, {Tool: "fetch_url"}}
	for _, c := range []string{"git status", "git log -1", "git push", "go test", "ls"} {
		args, _ := json.Marshal(map[string]string{"command": c})
		calls = append(calls, callrule.Call{Tool: "shell", Args: args})
	}
	for _, c := range calls {
		for l := range level(decision(w.Approvals, c)) + 1 {
			out[fmt.Sprintf("%s %s at %d", c.Tool, c.Args, l)] = "approvals"
		}
	}
	return out
}

func excluded(patterns []string, rel string) bool {
	for dir := rel; dir != "." && dir != ""; dir = path.Dir(dir) {
		for _, p := range patterns {
			if ok, _ := doublestar.Match(p, dir); ok {
				return true
			}
		}
	}
	return false
}

// decision is the first rule about a call.
func decision(a workshop.Approvals, c callrule.Call) workshop.Approval {
	for _, r := range a.Rules {
		rule, _ := callrule.Parse(r.Tool, r.Match)
		if r.Approval == workshop.ApprovalAuto && rule.Grants(c) || r.Approval != workshop.ApprovalAuto && rule.Restricts(c) == callrule.Yes {
			return r.Approval
		}
	}
	return a.Default.V
}

func side(t *testing.T, w *random) (Side, bool) {
	s, list := Read(t.Context(), fstest.MapFS{"workshop.yaml": {Data: []byte(w.text())}}, "workshop.yaml", "", nil)
	if list.HasErrors() && !strings.Contains(list.Error(), "delegates") {
		return s, false
	}
	return s, s.Workshop != nil
}

// made is a made-up file, and what it grants.
type made struct {
	text  string
	side  Side
	facts map[string]string
}

// Whatever the matcher or the spec allows at head and not at base has a row that is
// widened or unknown: of each family of five files that differ by some edits, each is
// compared with each other.
func TestNothingIsWidenedWithoutARow(t *testing.T) {
	const families, others = 500, 4
	r := rand.New(rand.NewPCG(15, 2))
	pairs, widened := 0, 0
	for range families {
		w := newRandom(r)
		var family []made
		for i := range 1 + others {
			x := *w
			for range min(i, 1) * (1 + r.IntN(3)) {
				x.change(r)
			}
			if s, ok := side(t, &x); ok {
				family = append(family, made{x.text(), s, grantsOf(s.Workshop)})
			}
		}
		for i, base := range family {
			for j, head := range family {
				if i != j {
					pairs++
					widened += checkPair(t, base, head)
				}
			}
		}
	}
	if pairs < 10_000 || widened < 30_000 {
		t.Errorf("%d pairs and %d facts that are new: the generator makes too little", pairs, widened)
	}
}

// checkPair fails where a fact of head that base lacks has no row, and counts them.
func checkPair(t *testing.T, base, head made) (widened int) {
	rows, err := Compare(t.Context(), base.side, head.side)
	if err != nil {
		t.Fatal(err)
	}
	for fact, surface := range head.facts {
		if _, ok := base.facts[fact]; ok {
			continue
		}
		widened++
		if !slices.ContainsFunc(rows, func(r Row) bool {
			return (r.State == Widened || r.State == Unknown) && strings.HasPrefix(r.Surface, surface)
		}) {
			t.Fatalf("%q is new, and has no row of %s:\n%s\nbase\n%s\nhead\n%s", fact, surface, strings.Join(texts(rows), "\n"), base.text, head.text)
		}
	}
	return widened
}

// A file that only narrows has no row that stops it.
func TestNarrowingIsNeverWidening(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 3))
	pairs := 0
	for range 500 {
		w := newRandom(r)
		base, ok := side(t, w)
		if !ok {
			continue
		}
		for range 5 {
			x := *w
			for range 1 + r.IntN(3) {
				x.narrow(r)
			}
			head, ok := side(t, &x)
			if !ok {
				continue
			}
			pairs++
			rows, err := Compare(t.Context(), base, head)
			if err != nil {
				t.Fatal(err)
			}
			if Count(rows, Widened)+Count(rows, Unknown) > 0 {
				t.Fatalf("%s\nbase\n%s\nhead\n%s", strings.Join(texts(rows), "\n"), w.text(), x.text())
			}
		}
	}
	if pairs < 2000 {
		t.Errorf("only %d pairs", pairs)
	}
}
