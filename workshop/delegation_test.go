package workshop

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func delegating(to ...string) string {
	return "---\nallowed-tools: []\ndelegates-to: [" + strings.Join(to, ", ") + "]\n---\nDo.\n"
}

func TestDelegation(t *testing.T) {
	for _, tt := range []struct {
		name    string
		workers string
		files   map[string]string
		want    []string
	}{
		{
			name: "a chain", workers: "    - a\n    - b\n    - c\n",
			files: map[string]string{"workers/a.md": delegating("b", "c"), "workers/b.md": delegating("c"), "workers/c.md": plainWorker},
		},
		{
			name: "an unknown name", workers: "    - a\n    - reviewer\n",
			files: map[string]string{"workers/a.md": delegating("reviewr"), "workers/reviewer.md": plainWorker},
			want:  []string{"workers/a.md:3: a delegates to reviewr, which is not a worker of this workshop [5]"},
		},
		{
			name: "to itself", workers: "    - a\n", files: map[string]string{"workers/a.md": delegating("a")},
			want: []string{"workers/a.md:3: workers delegate in a cycle: a → a"},
		},
		{
			name: "a circle", workers: "    - a\n    - b\n    - c\n",
			files: map[string]string{"workers/a.md": delegating("b"), "workers/b.md": delegating("c"), "workers/c.md": delegating("b")},
			want:  []string{"workers/c.md:3: workers delegate in a cycle: b → c → b [3]"},
		},
		{
			name: "two circles", workers: "    - a\n    - b\n",
			files: map[string]string{"workers/a.md": delegating("a", "b"), "workers/b.md": delegating("a")},
			want: []string{
				"workers/a.md:3: workers delegate in a cycle: a → a",
				"workers/b.md:3: workers delegate in a cycle: a → b → a [3]",
			},
		},
		{
			name: "a toolset that is a worker", workers: "    - a\n    - b\n",
			files: map[string]string{"a.agent": "---\nname: a\ntoolsets: [b, c, filesystem_project_ro]\n---\nDo.\n", "b.agent": "---\nname: b\ntoolsets: [a, filesystem_project_ro]\n---\nDo.\n"},
			want: []string{
				`a.agent:3: "c" is neither a toolset nor a worker of this workshop, it isn't offered`,
				"b.agent:3: workers delegate in a cycle: a → b → a [3]",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := Load(t.Context(), project(small+tt.workers, tt.files), "workshop.yaml", Options{})
			if diff := cmp.Diff(tt.want, places(diags)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// B40: a delegate reaches no more than its caller. Line 11 is the caller's
// container, line 13 the delegate's.
func TestDelegateReachesNoMore(t *testing.T) {
	const head = `workshop:
  name: w
  container:
    image: i:1
    network: {mode: open, allow: [{host: db.internal, port: 5432, private: true}]}
    mounts: ["./a:/a", "./b:/b:rw"]
    secrets: [{name: s, env: S}]
    resources: {memory: 1G}
  workers:
    - name: a
      container: CALLER
    - name: b
      container: DELEGATE
`
	for _, tt := range []struct {
		name, caller, delegate string
		want                   []string
	}{
		{"the same", `{secrets: [s]}`, `{secrets: [s]}`, nil},
		{"less", `{secrets: [s]}`, `{network: none, mounts: ["./a/b:/x"]}`, nil},
		{"limits and image are free", `{resources: {memory: 128M}, image: "x:1", env: {A: b}}`, `{env: {C: d}}`, nil},
		{"mode", `{network: none}`, `{network: {mode: restricted, allow: []}}`, []string{
			"workers/a.md:3: a delegates to b, which reaches more: network restricted against none [13] [11]"}},
		{"allow", `{network: {mode: restricted, allow: [x.example.org]}}`, `{network: {mode: restricted, allow: [x.example.org, y.example.org]}}`, []string{
			"workers/a.md:3: a delegates to b, which reaches more: y.example.org port 80,443 [13] [11]"}},
		{"deny, and the delegate has it too", `{network: {deny: [x.example.org]}}`, `{network: {deny: ["**.example.org"]}}`, nil},
		{"deny, and the delegate can't reach it", `{network: {deny: [x.example.org]}}`, `{network: {mode: restricted, allow: [y.example.org]}}`, nil},
		{"deny", `{network: {deny: [x.example.org]}}`, `{network: {mode: restricted, allow: [x.example.org]}}`, []string{
			"workers/a.md:3: a delegates to b, which reaches more: x.example.org port 1-65535 is denied there and not here [13] [11]"}},
		{"a mount", `{mounts: ["./a:/a"]}`, `{mounts: ["./b:/b"]}`, []string{
			"workers/a.md:3: a delegates to b, which reaches more: the source ./b is not among the sources of the caller's mounts, nor below one [13] [11]"}},
		{"a writable mount", `{mounts: ["./b:/b"]}`, `{mounts: ["./b:/b:rw"]}`, []string{
			"workers/a.md:3: a delegates to b, which reaches more: ./b is mounted read-only in the caller and read-write here [13] [11]"}},
		{"a secret", `{}`, `{secrets: [s]}`, []string{
			"workers/a.md:3: a delegates to b, which reaches more: the secret s [13] [10]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.NewReplacer("CALLER", tt.caller, "DELEGATE", tt.delegate).Replace(head)
			_, diags := Load(t.Context(), project(text, map[string]string{"workers/a.md": delegating("b"), "workers/b.md": plainWorker}), "workshop.yaml", Options{})
			var got []string
			for i, s := range places(diags) {
				if strings.HasPrefix(diags[i].Code, "delegate") || diags[i].Severity == 1 {
					got = append(got, s)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
