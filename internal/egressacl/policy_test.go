package egressacl

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

var update = flag.Bool("update", false, "write the golden files")

// policyOf compiles the workshop in a directory.
func policyOf(t testing.TB, dir string) *firewall.Policy {
	t.Helper()
	w, list := workshop.Load(t.Context(), os.DirFS(dir), "workshop.yaml", workshop.Options{})
	if list.HasErrors() {
		t.Fatal(list)
	}
	c, err := compose.Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	return c.Policy
}

// The files, and what their diagnostics say.
func TestGolden(t *testing.T) {
	for name, dir := range map[string]string{"matrix": "testdata/matrix", "rooms": "testdata/rooms", "none": "testdata/none", "open": "testdata/open", "example": "../../examples/egress-proxy"} {
		for proxy, render := range map[string]Renderer{"squid": Squid, "envoy": Envoy} {
			t.Run(name+" "+proxy, func(t *testing.T) {
				text, list := render(policyOf(t, dir), Options{Guard: "workshop-guard"})
				if again, _ := render(policyOf(t, dir), Options{Guard: "workshop-guard"}); string(again) != string(text) {
					t.Error("another run writes another file")
				}
				golden(t, name+"."+proxy, text)
				golden(t, name+"."+proxy+".told", []byte(told(list)))
			})
		}
	}
	// What e2e/envoy decides about by Envoy's file.
	m := policyOf(t, "testdata/matrix").Rooms[0].Compile()
	var rows bytes.Buffer
	for _, r := range matrix() {
		addrs := addressesOf[strings.ToLower(r.host)]
		not := r.not != ""
		line, err := json.Marshal(map[string]any{"host": r.host, "port": r.port, "addresses": addrs, "guard": guards(m, r.host, r.port, addrs), "not": not})
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(append(line, '\n'))
	}
	golden(t, "matrix.rows", rows.Bytes())
}

func told(list diag.List) (out string) {
	for _, d := range list {
		out += d.Error() + " [" + d.Code + "]"
		if d.Detail != "" {
			out += " " + d.Detail
		}
		if d.Hint != "" {
			out += " Hint: " + d.Hint
		}
		out += "\n"
	}
	return out
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != string(got) {
		t.Errorf("%s differs (-update writes it): %v\n%s", path, err, got)
	}
}

// A deny line that can't be written makes no file, which would allow what it denies.
func TestDenyVariable(t *testing.T) {
	p := &firewall.Policy{Rooms: []firewall.RoomPolicy{{Room: "room", Mode: firewall.Restricted, Deny: []firewall.Rule{{Template: "${HOST:?}", Ports: []firewall.PortRange{firewall.AllPorts}}}}}}
	for _, render := range []Renderer{Squid, Envoy} {
		if text, list := render(p, Options{}); text != nil || !list.HasErrors() {
			t.Errorf("%s\n%v", text, list)
		}
	}
}

// What is a comment stays one.
func TestComments(t *testing.T) {
	p := policyOf(t, "testdata/matrix")
	for i := range p.Rooms[0].Allow {
		p.Rooms[0].Allow[i].Line = "work\nhttp_access allow all\\"
	}
	text, _ := Squid(p, Options{})
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(line, "http_access allow all") {
			t.Error("the name of a file is a line of its own")
		}
	}
}
