//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// addCargo gives a scenario the cargo of scripts/debian-cargo, if it is there, before it is up.
func addCargo(s *scenario.Scenario) {
	s.Helper()
	from := filepath.Join(s.Root, ".workshop-cache", "cargo")
	if _, err := os.Stat(from); err != nil {
		return
	}
	if err := os.CopyFS(filepath.Join(s.Dir, "cargo"), os.DirFS(from)); err != nil {
		s.Fatal(err)
	}
	s.Chown()
	edit(s, "- ./ca.pem:/ca.pem", "- ./ca.pem:/ca.pem\n      - ./cargo:/opt/cargo")
}

// cargoAsks has the worker's cargo ask for the index of a registry. Before 1.68 it fails as
// docs/credentials.md says, and nothing reaches the host.
func cargoAsks(t *testing.T, s *scenario.Scenario, host *private) {
	testutil.Require(t, s.Exists("cargo"), "there is no cargo: scripts/debian-cargo .workshop-cache/cargo")
	index := http.NewServeMux()
	index.HandleFunc("GET /index/config.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"dl": "https://cdn.example.org"}`)
	})
	index.HandleFunc("GET /index/gr/ee/greeting", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"name": "greeting", "vers": "1.0.0", "deps": [], "features": {}, "yanked": false, "cksum": "`+strings.Repeat("0", 64)+`"}`)
	})
	host.next = index
	cargo := func(index, args string) scenario.Done {
		return s.Run("exec", "builder", "--", "sh", "-c", `mkdir -p /tmp/cargo/src && cd /tmp/cargo && : >src/lib.rs && cat >Cargo.toml <<END
[package]
name = "app"
version = "0.1.0"
[dependencies]
greeting = {version = "1", registry = "acme"}
END
CARGO_HOME=/tmp/cargo/home CARGO_NET_RETRY=0 CARGO_REGISTRIES_ACME_INDEX="`+index+`" LD_LIBRARY_PATH=/opt/cargo /opt/cargo/cargo `+args)
	}
	d := cargo("", "--version")
	minor := 0
	if n, _ := fmt.Sscanf(d.Out, "cargo 1.%d.", &minor); n != 1 {
		t.Fatalf("%s%s", d.Out, d.Err)
	}
	t.Log(d.Out)
	page := strings.Join(strings.Fields(readFile(t, "../docs/credentials.md")), " ")
	fails := func(index, want string) {
		t.Helper()
		d := cargo(index, "generate-lockfile")
		if d.Code == 0 || !strings.Contains(d.Err, want) || !strings.Contains(page, want) {
			t.Errorf("exit code %d, want %q, as the page about credentials has it:\n%s%s", d.Code, want, d.Out, d.Err)
		}
		if got := host.take(); len(got) > 0 {
			t.Errorf("the host got %q", got)
		}
	}
	fails("$WORKSHOP_ENDPOINT_CARGO/index", "failed to receive HTTP 200 response: got 400")
	const sparse = "sparse+$WORKSHOP_ENDPOINT_CARGO/index/"
	if minor < 68 {
		fails(sparse, "usage of sparse registries requires")
		return
	}
	if d := cargo(sparse, "generate-lockfile && grep greeting Cargo.lock"); d.Code != 0 {
		t.Errorf("exit code %d:\n%s%s", d.Code, d.Out, d.Err)
	}
	host.only(t)
}
