package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/engine/namespace"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/landlock"
	"github.com/llmdo/workshop/internal/promise"
)

func readText(file string) string {
	b, _ := boundedfile.Read(file, 64<<10)
	return strings.TrimSpace(string(b))
}

// machineModules reads which security modules there are. labels: the engine labels
// containers for SELinux.
func machineModules(labels bool) doctor.Modules {
	return doctor.Modules{
		AppArmor: readText("/sys/module/apparmor/parameters/enabled"), SELinux: readText("/sys/fs/selinux/enforce"),
		RestrictsNS:  readText("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		EngineLabels: labels, Landlock: landlock.ABI(),
	}
}

// machineChecks are those of Linux.
func machineChecks() []doctor.Check {
	return []doctor.Check{
		{Group: doctor.Kernel, Name: "release", Run: func(context.Context) []doctor.Finding {
			return []doctor.Finding{doctor.Release(readText("/proc/sys/kernel/osrelease"))}
		}},
		{Group: doctor.Cgroups, Name: "version", Run: func(context.Context) []doctor.Finding {
			return []doctor.Finding{{Group: doctor.Cgroups, Name: "version", Level: doctor.OK, Text: cgroupVersion("/sys/fs/cgroup")}}
		}},
	}
}

// cgroupVersion says what is mounted.
func cgroupVersion(dir string) string {
	switch {
	case Exists(filepath.Join(dir, "cgroup.controllers")):
		return "control groups of version 2: " + readText(filepath.Join(dir, "cgroup.controllers"))
	case Exists(filepath.Join(dir, "unified")):
		return "control groups of version 1, and of 2 without controllers"
	case Exists(dir):
		return "control groups of version 1"
	}
	return "no control groups are mounted"
}

// otherInstalled is the finding on a package of another version than this program.
func otherInstalled(mine initimage.Names) (doctor.Finding, bool) {
	f, err := boundedfile.Open(initimage.Installed)
	if err != nil {
		return doctor.Finding{}, false
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, initimage.MaxSize)); err != nil || hex.EncodeToString(h.Sum(nil)) == mine.Digest {
		return doctor.Finding{}, false
	}
	return doctor.Finding{
		Group: doctor.Program, Name: "installed", Level: doctor.Warning,
		Text: "a package of another version is installed, whose workshop-init isn't this program's (" + initimage.Installed + ")",
		Do:   "see which programs there are: `which -a workshop`",
	}, true
}

// namespaceState is what the namespace engine left that isn't as it should be.
func (env *Env) namespaceState(ctx context.Context) (out []doctor.Finding) {
	left, err := namespace.StaleProjects(ctx, filepath.Join(env.StateDir(), promise.Namespace))
	if err != nil {
		return []doctor.Finding{{Group: doctor.State, Name: "namespace", Level: doctor.Error, Text: err.Error(), Do: "look at it: `ls -la " + env.StateDir() + "`"}}
	}
	for _, l := range left {
		f := doctor.Finding{Group: doctor.State, Name: "leftover", Level: doctor.Warning, Text: l.What, Do: "the next `workshop down` of any project removes it"}
		if l.Project != "" {
			f.Name, f.Text = "supervisor", fmt.Sprintf("project %s: %s", Printable(l.Project), l.What)
			f.Do = fmt.Sprintf("remove what is there: `workshop --engine namespace -p %s down`", l.Project)
		}
		if l.Broken {
			f.Level = doctor.Error
		}
		out = append(out, f)
	}
	return out
}
