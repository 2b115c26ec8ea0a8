package namespace

import (
	"fmt"
	"os"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
)

// forbidden lists the settings that forbid user namespaces to unprivileged users
// (user_namespaces(7), namespaces(7); the others are Debian's and Ubuntu's).
var forbidden = []struct{ file, sysctl, when, set, why string }{
	{"/proc/sys/user/max_user_namespaces", "user.max_user_namespaces", "0", "15000", "user namespaces are disabled on this machine"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone", "0", "1", "only root may create user namespaces on this machine"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", appArmorRestricts, "1", "0", "AppArmor denies programs all capabilities in user namespaces"},
}

// appArmorRestricts applies to programs without a profile. A package has one that grants
// this program user namespaces (packaging/apparmor).
const appArmorRestricts = "kernel.apparmor_restrict_unprivileged_userns"

// appArmorLabel is the label of this process; empty: unknown.
func appArmorLabel() string {
	b, err := os.ReadFile("/proc/self/attr/apparmor/current")
	if err != nil {
		return ""
	}
	return string(b)
}

// hasProfile reports whether a label is of a profile: "unconfined" is none, "workshop
// (unconfined)" is one, in that mode.
func hasProfile(label string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(strings.TrimRight(label, "\x00")), " ")
	return name != "" && name != "unconfined"
}

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
	for _, f := range forbidden {
		b, err := os.ReadFile(f.file)
		if err != nil || strings.TrimSpace(string(b)) != f.when || f.sysctl == appArmorRestricts && hasProfile(appArmorLabel()) {
			continue
		}
		return &engine.RefusedError{
			Promise: "B6", Reason: fmt.Sprintf("%s (%s = %s)", f.why, f.sysctl, f.when),
			Do: fmt.Sprintf("`sudo sysctl %s=%s` allows them (/etc/sysctl.d makes it permanent); or run workshop as root, or with --engine docker", f.sysctl, f.set),
		}
	}
	return nil
}

// refuseStart explains why the supervisor couldn't be started.
func (e *Engine) refuseStart(err error) error {
	if why := e.whyNot(); why != nil {
		return why
	}
	if os.IsPermission(err) || strings.Contains(err.Error(), "no space left") { // ENOSPC: too many namespaces
		do := "in a container, its own rules forbid it; elsewhere check seccomp, AppArmor or SELinux; or use --engine docker"
		if !e.rootless {
			do = "root lacks CAP_SYS_ADMIN here, as in a container; " + do
		}
		return &engine.RefusedError{Promise: "B6", Reason: "namespaces can't be created: " + err.Error(), Do: do}
	}
	return err
}
