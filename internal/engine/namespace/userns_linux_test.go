package namespace

import (
	"os"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// What forbids namespaces is said in one sentence, and what allows them in one command
// (B6).
func TestRestrictions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		r       restrictions
		says    string
		command string
	}{
		{"the kernel's limit", restrictions{max: "0", clone: "1", apparmor: "1"},
			"disabled on this machine (user.max_user_namespaces = 0)", "sudo sysctl user.max_user_namespaces=15000"},
		{"Debian's setting", restrictions{max: "15000", clone: "0"},
			"only root may create user namespaces on this machine (kernel.unprivileged_userns_clone = 0)", "sudo sysctl kernel.unprivileged_userns_clone=1"},
		{"AppArmor, without a package", restrictions{max: "15000", apparmor: "1"},
			"AppArmor denies programs all capabilities in user namespaces", "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
		{"AppArmor, the profile isn't loaded", restrictions{apparmor: "1", profile: profileThere},
			"AppArmor denies", "sudo apparmor_parser --replace /etc/apparmor.d/workshop"},
		{"AppArmor came after the package", restrictions{apparmor: "1", profile: profilePackage},
			"AppArmor denies", "sudo cp /usr/share/workshop/apparmor /etc/apparmor.d/workshop && sudo apparmor_parser --replace /etc/apparmor.d/workshop"},
		{"in a container", restrictions{max: "15000", clone: "1", container: "/.dockerenv"},
			"the container that this runs in may create no namespaces (/.dockerenv)", "on the container's host"},
		{"nothing that is known", restrictions{max: "15000"}, "namespaces can't be created", "sudo dmesg | tail"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.r.refusal()
			if !strings.Contains(got.Reason, tt.says) || !strings.Contains(got.Do, tt.command) || got.Promise != "B6" {
				t.Errorf("got %q and %q, want %q and %q", got.Reason, got.Do, tt.says, tt.command)
			}
			if n := strings.Count(got.Do, "`"); n != 2 && n != 0 {
				t.Errorf("%q has not one command", got.Do)
			}
		})
	}
	for _, r := range []restrictions{{}, {max: "1", clone: "1", apparmor: "0"}} {
		if !r.none() {
			t.Errorf("%+v forbids something", r)
		}
	}
}

// A setting alone decides nothing: whom it doesn't concern can make namespaces.
func TestTryNamespaces(t *testing.T) {
	testutil.Require(t, readRestrictions().none() || os.Geteuid() == 0, "user namespaces are restricted here")
	if err := tryNamespaces(); err != nil {
		t.Error(err)
	}
}
