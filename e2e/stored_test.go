//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// created is the body of a request to create a container.
type created map[string]any

func (c created) host() map[string]any { return c["HostConfig"].(map[string]any) }

// mount is the mount at a target.
func (c created) mount(target string) map[string]any {
	for _, m := range c.host()["Mounts"].([]any) {
		if m := m.(map[string]any); m["Target"] == target {
			return m
		}
	}
	return nil
}

// dishonest changes the creation of one service's container on its way to the engine.
type dishonest struct {
	service string
	change  func(created)
	want    string // promise and difference
}

// forgetfulEngine is the real engine, which stores another creation than it was sent.
func forgetfulEngine(s *scenario.Scenario, how *atomic.Pointer[dishonest]) string {
	s.Helper()
	return engineBehind(s, func(proxy *httputil.ReverseProxy) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if d := how.Load(); d != nil && strings.HasSuffix(r.URL.Path, "/containers/create") && strings.HasSuffix(r.URL.Query().Get("name"), "-"+d.service+"-1") {
				var body created
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
				d.change(body)
				text, err := json.Marshal(body)
				if err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
				r.Header.Set("Content-Length", strconv.Itoa(len(text)))
			}
			proxy.ServeHTTP(w, r)
		})
	})
}

// What an engine drops, changes or adds of a container is found before its start.
func TestB05_EngineThatStoresSomethingElse(t *testing.T) {
	scenario.OnlyDocker(t, "a creation that is changed on its way to the engine")
	set := func(key string, value any) func(created) { return func(c created) { c.host()[key] = value } }
	top := func(key string, value any) func(created) { return func(c created) { c[key] = value } }
	network := map[string]any{"EndpointsConfig": map[string]any{"bridge": map[string]any{}}}
	for _, group := range []struct {
		workshop string
		cases    []dishonest
	}{
		{"none", []dishonest{
			{"worker", set("CapDrop", nil), "B1 CapDrop: asked ALL, found none"},
			{"worker", set("CapAdd", []string{"SYS_PTRACE"}), "B1 CapAdd: asked none, found CAP_SYS_PTRACE"},
			{"worker", func(c created) { c.host()["SecurityOpt"] = c.host()["SecurityOpt"].([]any)[1:] }, "B2 SecurityOpt: asked no-new-privileges, found none"},
			{"worker", set("SecurityOpt", []string{"no-new-privileges=true", "seccomp=unconfined"}), "B2 SecurityOpt: asked seccomp=sha256:"},
			{"worker", set("ReadonlyRootfs", false), "B3 ReadonlyRootfs: asked true, found none"},
			{"worker", func(c created) { c.host()["Tmpfs"].(map[string]any)["/tmp"] = "rw,exec" }, "B3 Tmpfs: asked /tmp:"},
			{"worker", set("MaskedPaths", []string{}), "B3 MaskedPaths: asked /proc/acpi, "},
			{"worker", top("User", "0:0"), "B4 User: asked "},
			{"worker", func(c created) { c.host()["Memory"], c.host()["MemorySwap"] = 0, 0 }, "B5 Memory: asked "},
			{"worker", set("NanoCpus", 0), "B5 NanoCpus: asked "},
			{"worker", set("PidsLimit", nil), "B5 PidsLimit: asked "},
			{"worker", set("Ulimits", nil), "B5 Ulimits: asked "},
			{"worker", set("IpcMode", "host"), "B6 IpcMode: asked private, found host"},
			{"worker", set("PidMode", "host"), "B6 PidMode: asked none, found host"},
			{"worker", set("Devices", []any{map[string]any{"PathOnHost": "/dev/null", "PathInContainer": "/dev/x", "CgroupPermissions": "rwm"}}), "B6 Devices: asked none, found {PathOnHost:/dev/null"},
			{"worker", func(c created) { c.mount("/ca.pem")["ReadOnly"] = false }, "B7 Mounts: asked bind "},
			{"worker", set("Binds", []string{"/:/machine"}), "B7 Binds: asked none, found /:/machine"},
			{"worker", top("Entrypoint", []string{"/bin/sleep", "60"}), "B12 Entrypoint: asked ["},
			{"worker", func(c created) {
				c.host()["NetworkMode"], c["NetworkingConfig"] = "bridge", network
			}, "B20 NetworkMode: asked none, found bridge"},
			{"worker", set("Runtime", "io.containerd.runc.v2"), "B30 Runtime: asked runc, found io.containerd.runc.v2"},
			{"worker", func(c created) { c["Env"] = append(c["Env"].([]any), "HOST_TOKEN=0123") }, "B45 Env: asked none, found HOST_TOKEN"},
		}},
		{"ports", []dishonest{
			{"worker", func(c created) {
				c.host()["NetworkMode"], c["NetworkingConfig"] = "bridge", network
			}, "B20 NetworkMode: asked container:"},
			{"guard", set("PortBindings", map[string]any{"8080/tcp": []any{map[string]any{"HostPort": "28081"}}}), "B10 PortBindings: asked 127.0.0.1:"},
			{"room", set("CapAdd", []string{"NET_ADMIN", "SYS_ADMIN"}), "B1 CapAdd: asked CAP_NET_BIND_SERVICE, found CAP_SYS_ADMIN"},
		}},
	} {
		var how atomic.Pointer[dishonest]
		s := scenario.New(t, group.workshop, "what the engine stored otherwise than asked is refused by promise and field before the start, and nothing is left")
		s.Env = append(s.Env, "DOCKER_HOST="+forgetfulEngine(s, &how))
		for _, c := range group.cases {
			how.Store(&c)
			d := s.Expect(4, "up")
			promise, field, _ := strings.Cut(c.want, " ")
			if e := d.Err; !strings.Contains(e, field) || !strings.Contains(e, "("+promise+")") && !strings.Contains(e, c.want) {
				t.Errorf("%s: the error doesn't say so:\n%s", c.want, e)
			}
			if l := left(s); l != nil {
				t.Errorf("%s: it left %v", c.want, l)
			}
		}
		how.Store(nil)
		s.Up() // control: through the same socket, unchanged
		s.Expect(0, "down")
	}
}
