package docker

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

func oneService(change func(*types.ServiceConfig, *compose.Compiled)) engine.Desired {
	s := types.ServiceConfig{Name: "w"}
	s.Image, s.NetworkMode = "worker:1", "none"
	c := &compose.Compiled{
		Project: &types.Project{Name: "p", Services: types.Services{}, Volumes: types.Volumes{}, Networks: types.Networks{}},
		Roles:   map[string]compose.Role{"w": compose.RoleWorker},
		Facts:   &compose.Facts{ProjectDir: "/work/p"},
	}
	change(&s, c)
	c.Project.Services["w"] = s
	return engine.Desired{Compiled: c}
}

// Every field of a service is either carried out or an error: none is
// dropped. A field that compose-go adds is an error until somebody looks.
func TestEveryFieldIsCarriedOutOrAnError(t *testing.T) {
	var fields []reflect.StructField
	var collect func(reflect.Type)
	collect = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Anonymous {
				collect(f.Type)
				continue
			}
			fields = append(fields, f)
		}
	}
	collect(reflect.TypeFor[types.ServiceConfig]())
	for _, f := range fields {
		var s types.ServiceConfig
		v := reflect.ValueOf(&s).Elem().FieldByName(f.Name)
		fillValue(v)
		if v.IsZero() {
			t.Errorf("%s: the test can't set it", f.Name)
		}
		err := checkKnown("service w", s)
		var unknown *engine.UnknownFieldError
		isKnown := slices.Contains(known["ServiceConfig"], f.Name)
		switch {
		case !isKnown && (!errors.As(err, &unknown) || unknown.Fields[0] != f.Name):
			t.Errorf("%s is not known, and err = %v", f.Name, err)
		case isKnown && errors.As(err, &unknown) && slices.Contains(unknown.Fields, f.Name):
			t.Errorf("%s is known, and err = %v", f.Name, err)
		}
	}
	for _, name := range known["ServiceConfig"] {
		if !slices.ContainsFunc(fields, func(f reflect.StructField) bool { return f.Name == name }) {
			t.Errorf("%s is no field of a service", name)
		}
	}
}

// fillValue sets v to something that is not zero.
func fillValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32:
		v.SetFloat(1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillValue(v.Field(i))
				return
			}
		}
	}
}

func TestUnknownInsideIsAnError(t *testing.T) {
	for name, change := range map[string]func(*types.ServiceConfig){
		"Volumes.Consistency": func(s *types.ServiceConfig) {
			s.Volumes = []types.ServiceVolumeConfig{{Type: "bind", Consistency: "cached"}}
		},
		"Volumes.Bind.SELinux": func(s *types.ServiceConfig) {
			s.Volumes = []types.ServiceVolumeConfig{{Bind: &types.ServiceVolumeBind{SELinux: "z"}}}
		},
		"Networks.Priority": func(s *types.ServiceConfig) { s.Networks = map[string]*types.ServiceNetworkConfig{"x": {Priority: 1}} },
		"Ports.Name":        func(s *types.ServiceConfig) { s.Ports = []types.ServicePortConfig{{Name: "x"}} },
	} {
		var s types.ServiceConfig
		change(&s)
		if err := checkKnown("service w", s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTranslateRefusals(t *testing.T) {
	for want, change := range map[string]func(*types.ServiceConfig, *compose.Compiled){
		"without an address": func(s *types.ServiceConfig, _ *compose.Compiled) {
			s.Ports = []types.ServicePortConfig{{Target: 80, Published: "80"}}
		},
		"never recursive": func(s *types.ServiceConfig, _ *compose.Compiled) {
			s.Volumes = []types.ServiceVolumeConfig{{Type: "bind", Source: "/x", Target: "/y", Bind: &types.ServiceVolumeBind{Recursive: "enabled"}}}
		},
		"not in the project": func(s *types.ServiceConfig, _ *compose.Compiled) {
			s.Volumes = []types.ServiceVolumeConfig{{Type: "volume", Source: "x", Target: "/y"}}
		},
		"has no container":   func(s *types.ServiceConfig, _ *compose.Compiled) { s.NetworkMode = "service:room" },
		"missing network":    func(s *types.ServiceConfig, _ *compose.Compiled) { s.NetworkMode = "" },
		"has no value":       func(s *types.ServiceConfig, _ *compose.Compiled) { s.Environment = types.MappingWithEquals{"A": nil} },
		"no seccomp profile": func(s *types.ServiceConfig, _ *compose.Compiled) { s.SecurityOpt = []string{"seccomp:./seccomp.json"} },
		"restart policy":     func(s *types.ServiceConfig, _ *compose.Compiled) { s.Restart = "sometimes" },
		"secret \"s\" has no": func(s *types.ServiceConfig, _ *compose.Compiled) {
			s.Secrets = []types.ServiceSecretConfig{{Source: "s"}}
		},
		`source of /y, "/x\xff", is not UTF-8`: func(s *types.ServiceConfig, _ *compose.Compiled) {
			s.Volumes = []types.ServiceVolumeConfig{{Type: "bind", Source: "/x\xff", Target: "/y"}}
		},
		`source of /run/secrets/s, "/x\xff", is not UTF-8`: func(s *types.ServiceConfig, c *compose.Compiled) {
			s.Secrets = []types.ServiceSecretConfig{{Source: "s"}}
			c.Project.Secrets = types.Secrets{"s": {File: "/x\xff"}}
		},
		`target, "/y\xff", is not UTF-8`: func(s *types.ServiceConfig, _ *compose.Compiled) {
			s.Volumes = []types.ServiceVolumeConfig{{Type: "tmpfs", Target: "/y\xff"}}
		},
		"does not support Privileged": func(s *types.ServiceConfig, _ *compose.Compiled) { s.Privileged = true },
	} {
		if _, err := translate(oneService(change), "w", "", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestTranslate(t *testing.T) {
	pids, grace, no, home := int64(16), types.Duration(1500*time.Millisecond), false, "/home/worker"
	d := oneService(func(s *types.ServiceConfig, c *compose.Compiled) {
		s.NetworkMode = "service:room"
		s.CapDrop, s.CapAdd = []string{"ALL"}, []string{"NET_ADMIN"}
		s.SecurityOpt = []string{"no-new-privileges:true", "seccomp:./seccomp.json"}
		s.ReadOnly, s.User, s.WorkingDir, s.Init, s.Ipc = true, "1000:1000", "/workspace", &no, "private"
		s.MemLimit, s.MemSwapLimit, s.CPUS, s.PidsLimit, s.ShmSize = 1<<20, 1<<20, 0.1, pids, 4096
		s.Tmpfs = types.StringList{"/tmp:rw,noexec,size=1m"}
		s.StopGracePeriod = &grace
		s.Entrypoint = types.ShellCommand{"/opt/workshop/workshop-init", "gate"}
		s.Environment = types.MappingWithEquals{"HOME": &home}
		s.Ulimits = map[string]*types.UlimitsConfig{"nofile": {Soft: 5, Hard: 6}}
		s.Volumes = []types.ServiceVolumeConfig{
			{Type: "bind", Source: "../../src", Target: "/src", ReadOnly: true, Bind: &types.ServiceVolumeBind{Recursive: "disabled"}},
			{Type: "volume", Source: "tools", Target: "/opt/workshop", ReadOnly: true, Volume: &types.ServiceVolumeVolume{NoCopy: true}},
		}
		s.Ports = []types.ServicePortConfig{{HostIP: "127.0.0.1", Target: 20000, Published: "8080", Protocol: "tcp"}}
		c.Seccomp = []byte(`{"defaultAction":"SCMP_ACT_ERRNO"}`)
		c.Project.Volumes["tools"] = types.VolumeConfig{Name: "workshop-init-1", External: true}
	})
	got, err := translate(d, "w", "id-room", "")
	if err != nil {
		t.Fatal(err)
	}
	h := got.host
	check := func(what string, ok bool) {
		t.Helper()
		if !ok {
			t.Errorf("%s: %+v\n%+v", what, got.config, h)
		}
	}
	check("name", got.name == "p-w-1")
	check("network", h.NetworkMode == "container:id-room")
	check("caps", slices.Equal(h.CapDrop, []string{"ALL"}) && slices.Equal(h.CapAdd, []string{"NET_ADMIN"}))
	check("security", slices.Equal(h.SecurityOpt, []string{"no-new-privileges=true", `seccomp={"defaultAction":"SCMP_ACT_ERRNO"}`}))
	check("limits", h.Memory == 1<<20 && h.MemorySwap == 1<<20 && h.NanoCPUs == 100_000_000 && *h.PidsLimit == 16 && h.ShmSize == 4096)
	check("init", h.Init != nil && !*h.Init && h.ReadonlyRootfs && h.IpcMode == "private")
	check("tmpfs", h.Tmpfs["/tmp"] == "rw,noexec,size=1m")
	check("stop", *got.config.StopTimeout == 2)
	check("health", slices.Equal(got.config.Healthcheck.Test, []string{"NONE"}))
	check("env", slices.Equal(got.config.Env, []string{"HOME=/home/worker"}))
	check("ulimit", h.Ulimits[0].Name == "nofile" && h.Ulimits[0].Soft == 5 && h.Ulimits[0].Hard == 6)
	check("bind", h.Mounts[0].Source == "/work/p/src" && h.Mounts[0].ReadOnly && h.Mounts[0].BindOptions.NonRecursive && !h.Mounts[0].BindOptions.CreateMountpoint)
	check("volume", h.Mounts[1].Type == mount.TypeVolume && h.Mounts[1].Source == "workshop-init-1" && h.Mounts[1].VolumeOptions.NoCopy)
	check("port", slices.Equal(h.PortBindings["20000/tcp"], []nat.PortBinding{{HostIP: "127.0.0.1", HostPort: "8080"}}))
	for label, want := range map[string]string{
		engine.LabelProject: "p", engine.LabelService: "w", engine.LabelNumber: "1", engine.LabelOneOff: "False",
		compose.LabelDirectory: "/work/p", engine.LabelWorkingDir: "/work/p/.workshop/p",
	} {
		check(label, got.config.Labels[label] == want)
	}
}
