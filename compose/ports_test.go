package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/workshop"
)

// autoSample has two workers with open ports, one of them on every address, and a
// fixed one.
func autoSample(t *testing.T) *workshop.Workshop {
	w := sample(t, 2)
	port := func(host string, published, target uint16) workshop.Port {
		return workshop.Port{Host: val(host), Published: val(published), Target: val(target), At: at(30)}
	}
	open := port("0.0.0.0", 0, 8081)
	open.ExposeBeyondHost = true
	w.Workers[0].Container.Ports = []workshop.Port{port("127.0.0.1", 0, 8080), port("127.0.0.1", 9000, 9000)}
	w.Workers[1].Container.Ports = []workshop.Port{open, port("::1", 0, 8082)}
	return w
}

// TestAutoPorts: the project names no number where the file leaves it open, the facts
// do, and B10 holds with both.
func TestAutoPorts(t *testing.T) {
	c := compiled(t, autoSample(t))
	want := []PortKey{{"worker-0", 8080}, {"worker-1", 8081}, {"worker-1", 8082}}
	if diff := cmp.Diff(want, c.AutoPorts()); diff != "" {
		t.Error(diff)
	}
	files, err := Render(c)
	if err != nil {
		t.Fatal(err)
	}
	text := string(files[slices.IndexFunc(files, func(f File) bool { return f.Path == "compose.yaml" })].Data)
	for _, line := range []string{"127.0.0.1::20000/tcp", "127.0.0.1:9000:20001/tcp", "0.0.0.0::20002/tcp", "[::1]::20003/tcp"} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is not in:\n%s", line, text)
		}
	}
	f := sampleFacts()
	f.Ports = map[PortKey]uint16{want[0]: 26001, want[1]: 26002, want[2]: 26003}
	ready, list := WithFacts(c, f)
	if list.HasErrors() {
		t.Fatal(list)
	}
	for _, c := range []*Compiled{c, ready} {
		for _, v := range Check(c) {
			t.Error(v)
		}
	}
	var got []string
	for _, p := range ready.Project.Services[GuardService].Ports {
		got = append(got, p.HostIP+" "+p.Published)
	}
	if diff := cmp.Diff([]string{"127.0.0.1 26001", "127.0.0.1 9000", "0.0.0.0 26002", "::1 26003"}, got); diff != "" {
		t.Error(diff)
	}
	for port, want := range map[string]PortKey{"26003": want[2], "9000": {"worker-0", 9000}, "": {}, "0": {}, "20000": {}} {
		if got := ready.PublisherOf(port); got != want {
			t.Errorf("publisher of %q: got %v, want %v", port, got, want)
		}
	}
	if p := c.Project.Services[GuardService].Ports[0].Published; p != "" {
		t.Errorf("the facts changed the compiled project: %q", p)
	}
}

// TestB10_AutoPortExposed: an open port on every address needs expose_beyond_host, too.
func TestB10_AutoPortExposed(t *testing.T) {
	w := autoSample(t)
	w.Workers[1].Container.Ports[0].ExposeBeyondHost = false
	c, err := Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	found := Check(c)
	if len(found) != 1 || found[0].Promise != "B10" {
		t.Errorf("got %v, want one violation of B10", found)
	}
}
