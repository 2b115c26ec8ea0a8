package compose

import (
	"reflect"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// common checks what holds for workers, rooms and the guard.
func (k *checker) common(s *types.ServiceConfig) {
	k.must(sameSet(s.CapDrop, "ALL"), "B1", "capabilities are not all dropped: %q", s.CapDrop)
	k.must(!s.Privileged, "B2", "it is privileged")
	k.must(sameSet(s.SecurityOpt, "no-new-privileges:true", seccompOption), "B2", "security options are %q", s.SecurityOpt)
	k.must(s.ReadOnly, "B3", "the root filesystem is writable")
	for _, t := range s.Tmpfs {
		dir, options, _ := strings.Cut(t, ":")
		k.must(positiveSize(options), "B3", "tmpfs %s has no size", dir)
		k.must(option(options, "nosuid") && option(options, "nodev"), "B3", "tmpfs %s lacks nosuid or nodev", dir)
	}
	k.must(s.MemLimit > 0, "B5", "memory is not limited")
	k.must(s.MemSwapLimit == s.MemLimit, "B5", "swap beyond memory: memswap_limit is %d, mem_limit %d", s.MemSwapLimit, s.MemLimit)
	k.must(s.CPUS > 0, "B5", "cpu is not limited")
	k.must(s.PidsLimit > 0, "B5", "pids are not limited")
	k.must(!s.OomKillDisable, "B5", "the kernel may not end it when memory runs out")

	k.must(boundedLog(s.Logging), "B5", "what it prints is kept without a bound")

	k.must(s.Ipc == "private", "B6", "ipc is %q", s.Ipc)
	for _, n := range []struct{ key, value string }{
		{"pid", s.Pid}, {"uts", s.Uts}, {"userns_mode", s.UserNSMode}, {"cgroup", s.Cgroup}, {"cgroup_parent", s.CgroupParent},
	} {
		k.must(n.value == "", "B6", "%s is %q", n.key, n.value)
	}
	k.must(len(s.Devices) == 0 && len(s.DeviceCgroupRules) == 0 && len(s.Gpus) == 0, "B6", "it has devices")
	k.must(!s.UseAPISocket, "B6", "it has the engine's socket")
	k.must(len(s.VolumesFrom) == 0, "B7", "it takes volumes of other containers")
	k.must(len(s.GroupAdd) == 0, "B4", "it has supplementary groups")

	k.must(len(s.Secrets) == 0 && len(s.Configs) == 0 && len(s.EnvFiles) == 0, "B11", "secrets, configs and env_file of Compose are not used")
	for _, name := range sortedKeys(s.Environment) {
		// Without a value, Compose passes the variable of the caller.
		k.must(s.Environment[name] != nil, "B11", "the variable %s is taken from the caller", name)
	}
	k.must(len(s.Command) == 0 && s.Init != nil && !*s.Init, "B12", "the main process is not ours alone")
	k.must(len(s.PreStart) == 0 && len(s.PostStart) == 0 && len(s.PreStop) == 0, "B12", "it has hooks")
	k.mounts(s)
}

// entrypoint checks the first words of the main process and of the health
// check: both run our programs.
func (k *checker) entrypoint(s *types.ServiceConfig, program, verb string) {
	k.must(len(s.Entrypoint) >= 2 && s.Entrypoint[0] == program && s.Entrypoint[1] == verb, "B12", "the main process is %q", []string(s.Entrypoint))
	h := s.HealthCheck
	k.must(h == nil || (len(h.Test) == 4 && h.Test[0] == "CMD" && h.Test[1] == program && h.Test[2] == "health"), "B12", "the health check is not ours")
}

// initImage checks that a service runs our image and nothing else.
func (k *checker) initImage(s *types.ServiceConfig) {
	want := initImage
	if k.c.Facts != nil {
		want = k.c.Facts.InitImage
	}
	k.must(s.Image == want && s.Build == nil && want != "", "B12", "the image is %q, not workshop-init", s.Image)
}

// boundedLog reports whether a container's output is kept in a few files of a
// size, and nowhere else: another driver would send it away.
func boundedLog(l *types.LoggingConfig) bool {
	if l == nil || l.Driver != "json-file" || len(l.Options) != 2 {
		return false
	}
	size, files := l.Options["max-size"], l.Options["max-file"]
	return size != "" && size[0] >= '1' && size[0] <= '9' && strings.HasSuffix(size, "m") && len(size) <= 3 &&
		len(files) == 1 && files[0] >= '1' && files[0] <= '9'
}

func option(options, name string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == name {
			return true
		}
	}
	return false
}

// positiveSize reports whether tmpfs options limit the size.
func positiveSize(options string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if size, ok := strings.CutPrefix(o, "size="); ok {
			return size != "" && size[0] >= '1' && size[0] <= '9'
		}
	}
	return false
}

// nonZero names the fields of a service that are set.
func nonZero(s types.ServiceConfig) []string {
	var names []string
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case f.Anonymous:
				walk(v.Field(i))
			case !v.Field(i).IsZero():
				key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
				names = append(names, key)
			}
		}
	}
	walk(reflect.ValueOf(s))
	return names
}
