package engine

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
)

var update = flag.Bool("update", false, "rewrite golden files")

func volumeMount(key, target string) types.ServiceVolumeConfig {
	return types.ServiceVolumeConfig{Type: types.VolumeTypeVolume, Source: key, Target: target, ReadOnly: true}
}

// desired is a project with a room, its guard, two workers in it (b with a
// copy) and one without network.
func desired(only ...string) Desired {
	service := func(name, image string, mounts ...types.ServiceVolumeConfig) types.ServiceConfig {
		s := types.ServiceConfig{Name: name}
		s.Image, s.Volumes = image, mounts
		return s
	}
	worker := func(name, mode string, mounts ...types.ServiceVolumeConfig) types.ServiceConfig {
		s := service(name, "worker:1", append(mounts, volumeMount(compose.ToolsVolume, compose.InitDir))...)
		s.NetworkMode = mode
		return s
	}
	const img = "sha256:init"
	room := service("room", img, volumeMount(compose.SocketsVolume, compose.SocketDir))
	room.NetworkMode = "none"
	guard := service("guard", img, volumeMount(compose.SocketsVolume, compose.SocketDir), volumeMount(compose.PolicyVolume, compose.PolicyDir))
	guard.Networks = map[string]*types.ServiceNetworkConfig{"default": nil}
	return Desired{Only: only, Compiled: &compose.Compiled{
		Project: &types.Project{
			Name: "p",
			Services: types.Services{
				"room": room, "guard": guard, "a": worker("a", "service:room"),
				"b": worker("b", "service:room", volumeMount("copy-1", "/input")), "c": worker("c", "none"),
			},
			Networks: types.Networks{"default": {Driver: "bridge"}},
			Volumes: types.Volumes{
				compose.SocketsVolume: {}, compose.PolicyVolume: {}, "copy-1": {},
				compose.ToolsVolume: {Name: "workshop-init-1", External: true},
			},
		},
		Roles: map[string]compose.Role{"room": compose.RoleRoom, "guard": compose.RoleGuard,
			"a": compose.RoleWorker, "b": compose.RoleWorker, "c": compose.RoleWorker},
		RoomOf: map[string]string{"a": "room", "b": "room"},
		Policy: &firewall.Policy{Version: 1, Workshop: "p", Rooms: []firewall.RoomPolicy{{Room: "room", Mode: firewall.Restricted, Workers: []string{"a", "b"}}}},
		Copies: map[string]compose.Copy{"copy-1": {Source: "./input", Exclude: []string{".env"}}},
		Facts:  &compose.Facts{ProjectDir: "/work/p", InitImage: img},
	}}
}

// running is what is observed after an up of d.
func running(d Desired) Observed {
	p := d.Compiled.Project
	o := Observed{Project: p.Name, Images: map[string]string{"sha256:init": "sha256:init", "worker:1": "sha256:worker"},
		PolicyDigest: firewall.Digest(d.Compiled.Policy)}
	for _, name := range sortedKeys(p.Services) {
		c := Container{
			ID: "id-" + name, Name: ContainerName(p, name), Service: name, State: "running", Directory: "/work/p",
			ConfigHash: ConfigHash(d, name), ImageID: o.Images[p.Services[name].Image],
		}
		if d.Compiled.RoomOf[name] != "" {
			c.NetworkOf = "id-room"
		}
		if name == "guard" {
			c.Networks = []string{"p_default"}
		}
		o.Containers = append(o.Containers, c)
	}
	o.Networks = []Object{{ID: "net-1", Name: "p_default", Labels: map[string]string{compose.LabelConfigHash: NetworkHash(p, "default")}}}
	for _, key := range sortedKeys(p.Volumes) {
		v := Object{Name: VolumeName(p, key), Labels: map[string]string{}}
		if c, ok := d.Compiled.Copies[key]; ok {
			v.Labels[compose.LabelConfigHash], v.Labels[compose.LabelContent] = CopyHash(c), c.Digest
		}
		if key != compose.ToolsVolume {
			o.Volumes = append(o.Volumes, v)
		}
	}
	return o
}

func edit(o *Observed, service string, change func(*Container)) {
	for i := range o.Containers {
		if o.Containers[i].Service == service {
			change(&o.Containers[i])
		}
	}
}

func drop(o *Observed, service string) {
	var kept []Container
	for _, c := range o.Containers {
		if c.Service != service {
			kept = append(kept, c)
		}
	}
	o.Containers = kept
}

func state(s string) func(*Container) { return func(c *Container) { c.State = s } }

func TestPlanUp(t *testing.T) {
	for name, tc := range map[string]func(d *Desired, o *Observed){
		"first":     func(_ *Desired, o *Observed) { *o = Observed{Project: "p", Images: map[string]string{}} },
		"unchanged": func(*Desired, *Observed) {},
		"one-worker": func(d *Desired, o *Observed) {
			d.Only = []string{"c"}
			*o = Observed{Project: "p", Images: o.Images}
		},
		"policy-changed":    func(d *Desired, _ *Observed) { allow(d) },
		"policy-unreadable": func(_ *Desired, o *Observed) { o.PolicyDigest = "" },
		"policy-changed-resolver": func(d *Desired, _ *Observed) {
			allow(d)
			d.Compiled.Policy.Resolvers = []string{"198.51.100.53"}
		},
		"policy-changed-guard-exited":  func(d *Desired, o *Observed) { allow(d); edit(o, "guard", state("exited")) },
		"policy-changed-guard-gone":    func(d *Desired, o *Observed) { allow(d); drop(o, "guard") },
		"policy-changed-worker-exited": func(d *Desired, o *Observed) { allow(d); edit(o, "a", state("exited")) },
		"policy-changed-room-gone":     func(d *Desired, o *Observed) { allow(d); drop(o, "room") },
		"policy-changed-by-compose": func(d *Desired, o *Observed) {
			allow(d)
			edit(o, "guard", func(c *Container) { c.ByCompose, c.ConfigHash = true, "" })
		},
		"room-exited":   func(_ *Desired, o *Observed) { edit(o, "room", state("exited")) },
		"room-gone":     func(_ *Desired, o *Observed) { drop(o, "room") },
		"guard-exited":  func(_ *Desired, o *Observed) { edit(o, "guard", state("exited")) },
		"worker-exited": func(_ *Desired, o *Observed) { edit(o, "a", state("exited")) },
		"worker-dead":   func(_ *Desired, o *Observed) { edit(o, "a", state("dead")) },
		"never-started": func(_ *Desired, o *Observed) { edit(o, "b", state("created")) },
		"by-compose": func(_ *Desired, o *Observed) {
			edit(o, "a", func(c *Container) { c.ByCompose, c.ConfigHash = true, "" })
		},
		"other-room": func(_ *Desired, o *Observed) { edit(o, "a", func(c *Container) { c.NetworkOf = "id-old" }) },
		"other-room-not-asked": func(d *Desired, o *Observed) {
			d.Only = []string{"b"}
			edit(o, "a", func(c *Container) { c.NetworkOf = "id-old" })
		},
		"room-left-not-asked": func(d *Desired, o *Observed) {
			d.Only = []string{"b"}
			edit(o, "c", func(c *Container) { c.NetworkOf = "id-room" })
		},
		"room-restarted": func(_ *Desired, o *Observed) {
			edit(o, "a", func(c *Container) { c.Started = time.Unix(1000, 0) })
			edit(o, "b", func(c *Container) { c.Started = time.Unix(3000, 0) })
			edit(o, "room", func(c *Container) { c.Started = time.Unix(2000, 0) })
		},
		"image-changed": func(_ *Desired, o *Observed) { o.Images["worker:1"] = "sha256:newer" },
		"pull-always":   func(d *Desired, _ *Observed) { pullPolicy(d, "always") },
		"pull-missing":  func(_ *Desired, o *Observed) { delete(o.Images, "worker:1"); edit(o, "c", state("dead")) },
		"network-changed": func(d *Desired, _ *Observed) {
			d.Compiled.Project.Networks["default"] = types.NetworkConfig{Driver: "bridge", Internal: true}
		},
		"two-networks-of-a-name": func(_ *Desired, o *Observed) {
			edit(o, "guard", func(c *Container) { c.NetworkIDs = []string{"net-1"} })
			o.Networks = append(o.Networks, Object{ID: "net-2", Name: "p_default", Labels: o.Networks[0].Labels})
		},
		"two-networks-unused": func(_ *Desired, o *Observed) {
			edit(o, "guard", state("exited"))
			o.Networks[0].Labels[LabelNetwork] = "default"
			o.Networks = append(o.Networks, Object{ID: "net-2", Name: "p_default", Labels: o.Networks[0].Labels})
		},
		"orphans": func(_ *Desired, o *Observed) {
			o.Containers = append(o.Containers,
				Container{ID: "id-z", Name: "p-z-1", Service: "z", State: "running", Networks: []string{"p_old"}},
				Container{ID: "id-h", Name: "workshop-helper-1", Helper: true, OneOff: true, State: "created"},
				Container{ID: "id-run", Name: "p-a-run-1", Service: "a", OneOff: true, State: "running"},
				Container{ID: "id-a2", Name: "p-a-2", Service: "a", State: "running"})
			o.Networks = append(o.Networks, Object{ID: "net-old", Name: "p_old"})
			o.Volumes = append(o.Volumes, Object{Name: "p_old"})
		},
		"exclude-changed-one-worker": func(d *Desired, _ *Observed) {
			d.Only = []string{"a"}
			d.Compiled.Copies["copy-1"] = compose.Copy{Source: "./input", Exclude: []string{".env", "*.pem"}}
		},
		"copied-files-changed": func(d *Desired, _ *Observed) { setDigest(d, "new") },
		"copied-files-changed-other-worker": func(d *Desired, _ *Observed) {
			d.Only = []string{"a"}
			setDigest(d, "new")
		},
		"half-filled-copy": func(_ *Desired, o *Observed) { drop(o, "b") },
		"build": func(d *Desired, o *Observed) {
			for _, name := range []string{"a", "b"} {
				s := d.Compiled.Project.Services[name]
				s.Image, s.Build = "", &types.BuildConfig{Context: "."}
				d.Compiled.Project.Services[name] = s
			}
			d.Builds = map[string]string{"a": strings.Repeat("ab", 32), "b": strings.Repeat("ab", 32)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			o := running(d)
			tc(&d, &o)
			p, err := PlanUp(d, o)
			if err != nil {
				t.Fatal(err)
			}
			checkOrder(t, p)
			golden(t, "up-"+name, p.String())
		})
	}
}

// allow adds a line to the room's policy.
func allow(d *Desired) {
	host, err := firewall.ParseHostPattern("api.example.org")
	if err != nil {
		panic(err)
	}
	room := &d.Compiled.Policy.Rooms[0]
	room.Allow = append(room.Allow, firewall.Rule{Host: host, Ports: firewall.DefaultAllowPorts()})
}

// setDigest says that other files would be copied now.
func setDigest(d *Desired, digest string) {
	c := d.Compiled.Copies["copy-1"]
	c.Digest = digest
	d.Compiled.Copies["copy-1"] = c
}

func pullPolicy(d *Desired, policy string) {
	for name, s := range d.Compiled.Project.Services {
		if d.Compiled.Roles[name] == compose.RoleWorker {
			s.PullPolicy = policy
			d.Compiled.Project.Services[name] = s
		}
	}
}

// checkOrder: a step waits only for earlier ones, so every plan ends.
func checkOrder(t *testing.T, p *Plan) {
	t.Helper()
	for i, s := range p.Steps {
		if s.ID != i+1 {
			t.Errorf("step %d has ID %d", i+1, s.ID)
		}
		for _, a := range s.After {
			if a >= s.ID || a < 1 {
				t.Errorf("step %d waits for %d", s.ID, a)
			}
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	o := Observed{Project: "p", Images: map[string]string{}}
	first, err := PlanUp(desired(), o)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := PlanUp(desired(), o)
		if err != nil {
			t.Fatal(err)
		}
		if again.String() != first.String() {
			t.Fatal("same input, another plan")
		}
	}
}

func TestUnchangedIsEmpty(t *testing.T) {
	d := desired()
	p, err := PlanUp(d, running(d))
	if err != nil || !p.Empty() {
		t.Errorf("%v\n%s", err, p)
	}
}

// What runs containers of another build is replaced when it has none: it loses all
// before the first is created.
func TestOutdatedLosesAllFirst(t *testing.T) {
	for _, outdated := range []bool{true, false} {
		d := desired()
		o := running(d)
		o.Outdated = outdated
		for i := range o.Containers {
			o.Containers[i].ConfigHash = "old"
		}
		p, err := PlanUp(d, o)
		if err != nil {
			t.Fatal(err)
		}
		checkOrder(t, p)
		removed, all := map[int]bool{}, true
		for _, s := range p.Steps {
			removed[s.ID] = s.Op == OpRemoveContainer
		}
		for _, s := range p.Steps {
			if s.Op != OpCreateContainer {
				continue
			}
			n := 0
			for _, a := range s.After {
				if removed[a] {
					n++
				}
			}
			all = all && n >= len(o.Containers)
		}
		if all != outdated {
			t.Errorf("outdated %v: %s", outdated, p)
		}
	}
}

func TestForeignDirectoryIsRefused(t *testing.T) {
	d := desired()
	o := running(d)
	edit(&o, "a", func(c *Container) { c.Directory = "/other/My Tree" })
	_, up := PlanUp(d, o)
	_, restart := PlanRestart(d, o)
	_, down := PlanDown(o, "/work/p")
	for verb, err := range map[string]error{"up": up, "restart": restart, "down": down} {
		var f *ForeignError
		if !errors.As(err, &f) || f.ExitCode() != 4 || !strings.Contains(err.Error(), "-p p-work") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := PlanDown(o, ""); err != nil {
		t.Errorf("down of any directory: %v", err)
	}
}

func TestMissingImageThatMayNotBePulled(t *testing.T) {
	d := desired()
	pullPolicy(&d, "never")
	var m *MissingImageError
	if _, err := PlanUp(d, Observed{}); !errors.As(err, &m) || m.Image != "worker:1" {
		t.Errorf("err = %v", err)
	}
}

// B46: an image of the tag that somebody built or loaded is neither used for a locked
// digest nor replaced; without one the digest is pulled.
func TestLockedImage(t *testing.T) {
	d := desired()
	const tag, digest = "registry.example/worker:1", "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for name, s := range d.Compiled.Project.Services {
		if s.Image == "worker:1" {
			s.Image = tag + digest
			d.Compiled.Project.Services[name] = s
		}
	}
	if refs := DesiredImages(d); !slices.Contains(refs, tag) || !slices.Contains(refs, tag+digest) {
		t.Errorf("observed are %v", refs)
	}
	seen := Observed{Images: map[string]string{}, Digests: map[string][]string{}}
	p, err := PlanUp(d, seen)
	if err != nil || !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == OpPullImage && s.Key == tag+digest }) {
		t.Errorf("err = %v, %v", err, p)
	}
	seen.Images[tag], seen.Digests[tag] = "sha256:other", nil
	var l *LockedImageError
	if _, err := PlanUp(d, seen); !errors.As(err, &l) || l.Image != tag+digest || l.Tag != tag || l.ExitCode() != 4 {
		t.Errorf("err = %v", err)
	}
	seen.Images[tag+digest] = "sha256:worker"
	if _, err := PlanUp(d, seen); err != nil {
		t.Error(err)
	}
}

func TestUnknownWorker(t *testing.T) {
	var u *UnknownWorkerError
	if _, err := PlanUp(desired("a", "nope", "guard"), Observed{}); !errors.As(err, &u) || len(u.Names) != 2 {
		t.Errorf("err = %v", err)
	}
}

func TestPlanDownAndRestart(t *testing.T) {
	d := desired()
	o := running(d)
	o.Containers = append(o.Containers, Container{ID: "id-h", Name: "workshop-helper-1", Helper: true, OneOff: true, State: "created"})
	down, err := PlanDown(o, "/work/p")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "down", down.String())
	for name, only := range map[string][]string{"restart": nil, "restart-one": {"a"}} {
		d.Only = only
		p, err := PlanRestart(d, o)
		if err != nil {
			t.Fatal(err)
		}
		checkOrder(t, p)
		golden(t, name, p.String())
	}
	drop(&o, "a")
	var nr *NotRunningError
	if _, err := PlanRestart(d, o); !errors.As(err, &nr) {
		t.Errorf("err = %v", err)
	}
}
