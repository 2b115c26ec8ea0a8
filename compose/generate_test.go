package compose

import (
	"fmt"
	"strings"
	"testing"
)

// choices turns fuzzed bytes into decisions; when they are used up, every
// decision is the first.
type choices struct{ data []byte }

func (c *choices) n(most int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % most
}

func (c *choices) of(words ...string) string { return words[c.n(len(words))] }

// container writes a random `container:` in flow form; worker reports whether
// keys that only a workshop may have are left out.
func (c *choices) container(worker bool) string {
	var keys []string
	add := func(format string, args ...any) { keys = append(keys, fmt.Sprintf(format, args...)) }
	switch c.n(3) {
	case 0:
		add("image: %s", c.of("host", "a:1", `"r.example.org:5000/a@sha256:`+strings.Repeat("0", 64)+`"`))
	case 1:
		add(`build: {context: ./%s, args: {A: "%s"}}`, c.of("docker", "a b", "x#y"), c.of("1", "${HOME}", "$$", "yes"))
	case 2:
		if !worker {
			add("image: b")
		}
	}
	mode := c.of("none", "restricted", "open")
	network := "mode: " + mode
	if mode == "restricted" {
		network += ", allow: [" + c.of("", "api.example.org", `"*.docs.example.org:22", {cidr: 198.51.100.0/24, port: "8000-8010"}`, `"${API_HOST}"`) + "]"
	}
	if mode != "none" {
		network += ", deny: [" + c.of("", "gist.example.org") + "], room: " + c.of("shared", "own")
		if !worker {
			network += ", proxy: \"" + c.of("", "${EGRESS_PROXY:-}", "http://p.example.org:1") + "\", dns: [" + c.of("", "198.51.100.53", `"${RESOLVER}"`) + "]"
		}
	}
	if !worker || c.n(3) == 1 {
		add("network: {%s}", network)
	}
	var mounts []string
	for i := range c.n(4) {
		extra := c.of("", ", mode: rw", ", copy: true", `, exclude: ["*.pem"]`, ", mode: rw, git: rw", ", sockets: allow")
		mounts = append(mounts, fmt.Sprintf(`{source: "./%s", target: "/m%d/%s"%s}`, c.of("src", "a b", "$$x", "é", "${DATA_DIR}"), i, c.of("x", "y z", "a#b", "-"), extra))
	}
	if !worker {
		add("mounts: [%s]", strings.Join(mounts, ", "))
	} else if c.n(4) == 1 {
		add("mounts: []")
	}
	if !worker && c.n(2) == 1 {
		add("resources: {memory: \"%s\", cpu: %s, pids: \"%s\"}", c.of("128M", "1G", "100000000", "${MEMORY}"), c.of("0.1", "1", "0.333", "2.5"), c.of("64", "256", "${PIDS}"))
		add("tmp: %s, shm: %s", c.of("64M", "1000000"), c.of("64M", "32M"))
	}
	if c.n(2) == 1 {
		add("env: {A: \"%s\", %s: 1}", c.of("", "yes", "1", "${TOKEN_URL}", "a\\nb", "$$HOME", ": #"), c.of("B", "HOME", "_x", "PATH"))
	}
	if c.n(2) == 1 {
		add("user: \"%s\"", c.of("1000", "1:1", "1234:5678", "${UID}"))
	}
	if !worker && c.n(2) == 1 {
		add("secrets: [{name: token, env: TOKEN}]")
	}
	if mode != "none" && worker && c.n(2) == 1 {
		add("ports: [%s]", c.of(`"8080:8080"`, `"${PORT}:9000"`, `"[::1]:8081:8081"`, "{published: 1024, target: 1024, host: 0.0.0.0, expose_beyond_host: true}"))
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

// workshop writes a random workshop.yaml.
func (c *choices) workshop() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workshop:\n  name: \"%s\"\n  container: %s\n  workers:\n", c.of("x", "a-b_c", "0", "no", "null"), c.container(false))
	for i := range 1 + c.n(3) {
		name := []string{"one", "two", "alone"}[i]
		if c.n(2) == 0 {
			fmt.Fprintf(&b, "    - %s\n", name)
		} else {
			fmt.Fprintf(&b, "    - {name: %s, container: %s}\n", name, c.container(true))
		}
	}
	return b.String()
}

// randomBytes depends on the seed alone.
func randomBytes(seed int) []byte {
	data := make([]byte, 64)
	x := uint32(seed)*2654435761 + 1
	for i := range data {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	return data
}

// TestGeneratedWorkshops is FuzzGenerated over fixed seeds, most of which must
// compile for the test to mean anything.
func TestGeneratedWorkshops(t *testing.T) {
	const seeds = 150
	compiles := 0
	for seed := range seeds {
		if compileText(t, (&choices{randomBytes(seed)}).workshop()) {
			compiles++
		}
	}
	if compiles < seeds/3 {
		t.Errorf("only %d of %d compile", compiles, seeds)
	}
	t.Logf("%d of %d compile", compiles, seeds)
}

// FuzzGenerated is FuzzCompile over files that mostly load.
func FuzzGenerated(f *testing.F) {
	for seed := range 8 {
		f.Add(randomBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compileText(t, (&choices{data}).workshop()) })
}
