package workshop

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Each key says what it means, with a line to write.
func TestKeysAreDescribed(t *testing.T) {
	seen := map[reflect.Type]bool{reflect.TypeFor[document](): true}
	for _, s := range sections {
		seen[s.form] = true
	}
	for form := range seen {
		for _, f := range formOf(form).fields {
			if !strings.HasSuffix(f.doc, ".") || !strings.HasPrefix(f.example, "write "+f.keyName+": ") {
				t.Errorf("%s.%s: doc %q, example %q", form.Name(), f.keyName, f.doc, f.example)
			}
		}
	}
	forms.Range(func(form, _ any) bool {
		if !seen[form.(reflect.Type)] {
			t.Errorf("%v is not in the reference", form)
		}
		return true
	})
}

// The defaults that tags name are those that a file without the keys has.
func TestDefaultsOfTags(t *testing.T) {
	w, l := Load(t.Context(), singleFile([]byte(`workshop:
  name: test
  container:
    build: .
    network: {mode: restricted, allow: [{host: a.example.org}]}
    mounts: [{source: ./src, target: /src}]
    ports: [{target: 8080}]
    caches: [npm]
  models: {services: {qwen: {image: host, file: qwen.gguf, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}}}
  workers: [{name: worker, container: {}}]
`)), "workshop.yaml", testOptions())
	if w == nil {
		t.Fatal(l)
	}
	c := &w.Container
	text := func(v any) string {
		switch x := v.(type) {
		case Size:
			return x.String()
		case time.Duration:
			return strings.TrimSuffix(x.String(), "0s")
		}
		return fmt.Sprint(v)
	}
	mode := map[bool]string{false: "ro", true: "rw"}
	room := map[bool]string{false: "shared", true: "own"}
	have := map[string]string{
		"workshopForm.isolation": text(w.Isolation.V), "approvalsForm.default": text(w.Approvals.Default.V),
		"partialContainer.pull": text(c.Pull.V), "partialContainer.kernel": text(c.Kernel.V), "partialContainer.workdir": c.Workdir.V,
		"partialContainer.scratch": text(c.Scratch.V), "partialContainer.tmp": text(c.Tmp.V), "partialContainer.shm": text(c.Shm.V), "partialContainer.home": text(c.Home.V),
		"partialResources.memory": text(c.Resources.Memory.V), "partialResources.cpu": text(c.Resources.CPU.V), "partialResources.pids": text(c.Resources.PIDs.V), "partialResources.timeout": text(c.Resources.Timeout.V),
		"partialContainer.network": defaultContainer().Network.Mode.V.String(), "networkForm.mode": defaultContainer().Network.Mode.V.String(),
		"networkForm.room": room[c.Network.OwnRoom.V], "buildForm.dockerfile": c.Build.Dockerfile.V,
		"mountForm.mode": mode[c.Mounts[0].ReadWrite], "mountForm.copy": text(c.Mounts[0].Copy), "mountForm.outside_project": text(c.Mounts[0].OutsideProject),
		"modelForm.server":      w.Models[0].Server,
		"cacheForm.prune_above": text(c.Caches[0].PruneAbove.V),
		"portForm.host":         c.Ports[0].Host.V, "portForm.expose_beyond_host": text(c.Ports[0].ExposeBeyondHost),
		"ruleForm.port": "[" + strings.ReplaceAll(portsText(c.Network.Allow[0].Ports), ",", ", ") + "]", "ruleForm.private": text(c.Network.Allow[0].Private), "ruleForm.any_tenant": text(c.Network.Allow[0].AnyTenant),
		"gitForm.any_repository": text(c.Network.Allow[0].Endpoint.Git.AnyRepository),
		"ruleForm.encoded_slash": text(c.Network.Allow[0].Endpoint.EncodedSlash),
	}
	for _, s := range sections {
		for _, f := range formOf(s.form).fields {
			key := s.form.Name() + "." + f.keyName
			if f.absent != have[key] {
				t.Errorf("%s: the tag says %q, a file without the key has %q", key, f.absent, have[key])
			}
		}
	}
}
