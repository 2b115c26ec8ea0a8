package docker

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine"
)

// What answers must be podman where podman was asked for; else what answers is used. podman
// that says so at a ping is asked once, in its own API.
func TestAskedFlavour(t *testing.T) {
	for _, tc := range []struct {
		component string
		pings     bool // as podman
		asked     engine.Flavour
		is        engine.Flavour
		id, err   string
	}{
		{component: "Engine", is: engine.FlavourDocker, id: "one"},
		{component: "Podman Engine", is: engine.FlavourPodman},
		{component: "Podman Engine", asked: engine.FlavourPodman, is: engine.FlavourPodman},
		{component: "Podman Engine", pings: true, asked: engine.FlavourPodman, is: engine.FlavourPodman},
		{component: "Engine", asked: engine.FlavourPodman, err: "docker answers at unix://%s, not podman: use it as what it is: `--engine docker` with DOCKER_HOST"},
	} {
		t.Run(fmt.Sprintf("%s, asked for %s, ping %v", tc.component, tc.asked, tc.pings), func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "engine.sock")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Api-Version", "1.46")
				if tc.pings {
					w.Header().Set("Libpod-Api-Version", "5.0.0")
				}
				switch name := path.Base(r.URL.Path); {
				case name == "info" && strings.Contains(r.URL.Path, "/libpod/"):
					_, _ = io.WriteString(w, `{"host":{"os":"linux","arch":"arm64","cgroupVersion":"v2"},"store":{"graphRoot":"/data"},"version":{"Version":"5.0.0"}}`)
				case tc.pings && name != "_ping":
					t.Errorf("it is asked for %s", r.URL.Path)
				case name == "version":
					_, _ = fmt.Fprintf(w, `{"Version":"27.0.0","ApiVersion":"1.46","Components":[{"Name":%q}]}`, tc.component)
				case name == "info":
					_, _ = io.WriteString(w, `{"ServerVersion":"27.0.0","OSType":"linux","ID":"one"}`)
				}
			})}
			go func() { _ = s.Serve(l) }()
			t.Cleanup(func() { s.Close() })
			e, err := New(t.Context(), Options{Host: "unix://" + socket, Flavour: tc.asked})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			i, err := e.Info(t.Context())
			if tc.err != "" {
				if want := fmt.Sprintf(tc.err, socket); err == nil || err.Error() != want {
					t.Errorf("%v\nwant %s", err, want)
				}
				return
			}
			if err != nil || i.Flavour != tc.is || i.Kind != string(tc.is) || i.ID != tc.id {
				t.Errorf("got %s, kind %s, id %q, %v", i.Flavour, i.Kind, i.ID, err)
			}
			if i.Flavour == engine.FlavourPodman && (i.Version != "5.0.0" || i.Arch != "arm64" || i.DataRoot != "/data" || i.Daemon.CgroupVersion != "2") {
				t.Errorf("got %+v", i)
			}
		})
	}
}
