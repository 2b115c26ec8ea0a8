package namespace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine"
)

// userNamespaces returns the finding on running without root.
func (e *Engine) userNamespaces() engine.Finding {
	f := engine.Finding{Promise: "B6", Name: "user-namespaces", Held: true, Meaning: "an unprivileged user can run isolated workers"}
	if !e.rootless {
		f.Meaning = "not needed: the caller is root"
		return f
	}
	if why := e.whyNot(); why != nil {
		f.Held, f.Meaning, f.Do = false, why.Reason, why.Do
	}
	return f
}

// whyNot returns an error with the setting that forbids a rootless caller its
// namespaces; nil if none does.
func (e *Engine) whyNot() *engine.RefusedError {
	if !e.rootless {
		return nil
	}
	r := readRestrictions()
	if r.none() || tryNamespaces() == nil { // of whom it is asked decides: AppArmor has exceptions by path
		return nil
	}
	return r.refusal()
}

// restrictions are what this machine says of namespaces of unprivileged users
// (user_namespaces(7), namespaces(7); the last two settings are Debian's and Ubuntu's).
type restrictions struct {
	max, clone, apparmor string // settings; empty: there is none
	// container is how this process is known to be in one; empty: it isn't.
	container string
	profile   profileState
}

// profileState is what is there of the AppArmor profile of the package, which applies to
// its programs.
type profileState int

const (
	noProfile      profileState = iota // or this is another program
	profilePackage                     // only among the package's files
	profileThere                       // among AppArmor's, and not loaded
)

// The package's profile, and the program that it is for (packaging/apparmor).
const (
	packagedProfile  = "/usr/share/workshop/apparmor"
	installedProfile = "/etc/apparmor.d/workshop"
	packagedProgram  = "/usr/bin/"
)

func readRestrictions() restrictions {
	setting := func(file string) string {
		b, _ := os.ReadFile("/proc/sys/" + file)
		return strings.TrimSpace(string(b))
	}
	r := restrictions{
		max: setting("user/max_user_namespaces"), clone: setting("kernel/unprivileged_userns_clone"),
		apparmor: setting("kernel/apparmor_restrict_unprivileged_userns"), container: inContainer(),
	}
	if self, err := os.Executable(); err == nil && strings.HasPrefix(self, packagedProgram) {
		switch {
		case exists(installedProfile):
			r.profile = profileThere
		case exists(packagedProfile):
			r.profile = profilePackage
		}
	}
	return r
}

// inContainer is how this process is known to be in a container, "" if it isn't: engines
// leave a file, and managers of systemd the file of its interface.
func inContainer() string {
	for _, file := range []string{"/.dockerenv", "/run/.containerenv", "/run/systemd/container"} {
		if exists(file) {
			return file
		}
	}
	return ""
}

func (r restrictions) none() bool { return r.max != "0" && r.clone != "0" && r.apparmor != "1" }

// refusal says which setting forbids namespaces, and the command that allows them.
func (r restrictions) refusal() *engine.RefusedError {
	refused := &engine.RefusedError{Promise: "B6"}
	set := func(why, sysctl, is, to string) {
		refused.Reason = fmt.Sprintf("%s (%s = %s)", why, sysctl, is)
		refused.Do = fmt.Sprintf("allow them: `sudo sysctl %s=%s` (for good: in /etc/sysctl.d)", sysctl, to)
	}
	switch {
	case r.max == "0":
		set("user namespaces are disabled on this machine", "user.max_user_namespaces", "0", "15000")
	case r.clone == "0":
		set("only root may create user namespaces on this machine", "kernel.unprivileged_userns_clone", "0", "1")
	case r.apparmor == "1":
		set("AppArmor denies programs all capabilities in user namespaces", "kernel.apparmor_restrict_unprivileged_userns", "1", "0")
		switch r.profile {
		case profileThere:
			refused.Do = "load the profile that allows it: `sudo apparmor_parser --replace " + installedProfile + "`"
		case profilePackage:
			refused.Do = fmt.Sprintf("load the profile that allows it: `sudo cp %s %s && sudo apparmor_parser --replace %s`", packagedProfile, installedProfile, installedProfile)
		}
	case r.container != "":
		refused.Reason = "the container that this runs in may create no namespaces (" + r.container + ")"
		refused.Do = "run workshop on the container's host"
	default:
		refused.Reason, refused.Do = "namespaces can't be created", "see which of seccomp, AppArmor and SELinux denies it: `sudo dmesg | tail`"
	}
	return refused
}

// tryNamespaces makes the namespaces of a supervisor, uses a capability in them, and
// executes nothing there.
func tryNamespaces() error {
	cmd := exec.Cmd{Path: "/proc/self/no program", Dir: "/", SysProcAttr: &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		Chroot:      "/",
	}}
	if err := cmd.Run(); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// refuseStart explains why the supervisor couldn't be started.
func (e *Engine) refuseStart(err error) error {
	if !os.IsPermission(err) && !strings.Contains(err.Error(), "no space left") { // ENOSPC: too many namespaces
		return err
	}
	r := readRestrictions()
	if !e.rootless {
		r = restrictions{container: r.container}
	}
	refused := r.refusal()
	if r.none() {
		refused.Reason += ": " + err.Error()
	}
	return refused
}
