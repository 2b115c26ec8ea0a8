//go:build amd64

package app

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/initimage"
)

const kitName = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// vmEnv has a workshop-vm that is a shell script: a case for each command.
func vmEnv(t *testing.T, cases string) *Env {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$@\" >>" + dir + "/calls\ncase $1 in\n" + cases + "\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, vmProgram), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return testEnv(&Env{Home: dir, Programs: []string{dir}, Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
}

func vmCase(name, answer string, code int) string {
	return fmt.Sprintf("%s) cat <<'END'\n%s\nEND\nexit %d ;;\n", name, answer, code)
}

var (
	vmQEMU  = vmCase("qemu", `{"qemu":{"version":"7.2.22"}}`, 0)
	vmKVM   = vmCase("kvm", `{}`, 0)
	vmPVM   = vmCase("kvm", `{"problem":"emulation (B13)","refused":true,"root":"modprobe it"}`, 1)
	vmKit   = vmCase("kit", `{"dir":"/kits/`+kitName+`","kit":{}}`, 0)
	vmNoKit = vmCase("kit", `{"problem":"no kernel","hint":"name one"}`, 1)
	vmGuest = vmCase("check", `{"ready":1500000000}`, 0)
)

// A step that needs others is taken after these; the kit stands in the user's settings.
func TestSetUpVM(t *testing.T) {
	if _, err := initimage.Default().Names("amd64"); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		name, script string
		want         string
		code         int
	}{
		{"all", vmQEMU + vmKVM + vmKit + vmGuest, "qemu kvm kit guest settings", CodeOK},
		{"no KVM", vmQEMU + vmPVM + vmKit + vmGuest, "qemu kvm:emulation (B13) kit settings", CodeRefused},
		{"no kernel", vmQEMU + vmKVM + vmNoKit, "qemu kvm kit:no kernel", CodeFailed},
		{"no QEMU", vmCase("qemu", `{"problem":"no QEMU"}`, 1) + vmKVM + vmKit, "qemu:no QEMU kvm kit settings", CodeFailed},
		{"no boot", vmQEMU + vmKVM + vmKit + vmCase("check", `{"problem":"late","refused":true}`, 1), "qemu kvm kit guest:late", CodeRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := vmEnv(t, c.script)
			settings := filepath.Join(env.Home, ".config/workshop/config.yaml")
			if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(settings, []byte("# mine\nquiet: true"), 0o640); err != nil {
				t.Fatal(err)
			}
			var steps []string
			err := env.SetUpVM(t.Context(), VMSource{Release: "6.1"}, func(s VMStep) {
				if s.Problem != "" {
					s.Name += ":" + s.Problem
				}
				steps = append(steps, s.Name)
			})
			if diff := cmp.Diff(c.want, strings.Join(steps, " ")); diff != "" {
				t.Error(diff)
			}
			if got := CodeOf(err); err == nil && c.code != CodeOK || err != nil && got != c.code {
				t.Errorf("got code %d, %v, want %d", got, err, c.code)
			}
			text, err := os.ReadFile(settings)
			want := "# mine\nquiet: true"
			if strings.HasSuffix(c.want, "settings") {
				want += "\nvm_kit: " + kitName + "\n"
			}
			if diff := cmp.Diff(want, string(text)); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
			calls, err := os.ReadFile(filepath.Join(env.Home, "calls"))
			if !strings.Contains(string(calls), " --dir "+env.Home+"/.local/share/workshop/vm --tree / --release 6.1\n") || err != nil {
				t.Errorf("%v\n%s", err, calls)
			}
		})
	}
}

func TestCheckVM(t *testing.T) {
	if _, err := initimage.Default().Names("amd64"); err != nil {
		t.Skip(err)
	}
	ours := `{"qemu":{},"kit":{},"ready":1}`
	for _, c := range []struct {
		name, kit, script string
		emulate           bool
		want              string // the error
		code              int
	}{
		{"ours", kitName, vmCase("check", ours, 0), false, "", CodeOK},
		{"emulated", kitName, vmCase("check", ours, 0), true, "", CodeOK},
		{"no kit", "", vmCase("check", ours, 0), false, "no kit for virtual machines: your settings have no vm_kit", CodeFailed},
		{"emulation", kitName, vmCase("check", `{"problem":"pvm (B13)","refused":true}`, 1), false, "pvm (B13)", CodeRefused},
		{"a problem", kitName, vmCase("check", `{"problem":"kit: changed"}`, 1), false, "kit: changed", CodeFailed},
		{"garbage", kitName, "check) echo text ;;", false, "workshop-vm check: invalid character", CodeFailed},
		{"a failure", kitName, "check) echo '{}'; echo why >&2; exit 2 ;;", false, "workshop-vm check: exit status 2: why", CodeFailed},
		{"a failure without a problem", kitName, "check) echo '{}'; exit 1 ;;", false, "workshop-vm check: exit status 1", CodeFailed},
		{"endless", kitName, "check) yes ;;", false, "workshop-vm check: ", CodeFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := vmEnv(t, c.script)
			env.Settings.VMKit = c.kit
			_, err := env.CheckVM(t.Context(), c.emulate)
			if c.code == CodeOK && err != nil || c.code != CodeOK && (err == nil || CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want code %d, %q", err, c.code, c.want)
			}
			calls, _ := os.ReadFile(filepath.Join(env.Home, "calls"))
			if got := strings.HasSuffix(string(calls), "/init --emulate\n"); got != c.emulate || c.kit != "" && !strings.Contains(string(calls), " --kit "+env.Home+"/.local/share/workshop/vm/"+kitName+" --init /") {
				t.Errorf("%s", calls)
			}
		})
	}
	nowhere := vmEnv(t, "")
	nowhere.Programs = []string{nowhere.Home + "/bin"}
	if _, err := nowhere.CheckVM(t.Context(), false); err == nil || !strings.Contains(err.Error(), "workshop-vm is in none of "+nowhere.Home+"/bin") {
		t.Errorf("without a program: %v", err)
	}
}

// B46: a kit is named by its hash, in the settings file alone.
func TestKitOfTheUser(t *testing.T) {
	a, env, err := withSettings(t, "vm_kit: "+kitName+"\n")
	if err != nil || a.Settings.VMKit != kitName {
		t.Errorf("got %q, %v", a.Settings.VMKit, err)
	}
	env["WORKSHOP_VM_KIT"] = kitName
	if _, _, err := a.UserValues(); err == nil || CodeOf(err) != CodeRefused {
		t.Errorf("by the environment: %v", err)
	}
	for _, bad := range []string{"../../tmp", kitName[1:], strings.ToUpper(kitName), "7"} {
		if _, _, err := withSettings(t, "vm_kit: "+bad+"\n"); err == nil || CodeOf(err) != CodeUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A setting is one line; every other stays, and what a line would change is left to a person.
func TestWithSetting(t *testing.T) {
	for _, c := range []struct{ name, was, want string }{
		{"none", "", "key: v\n"},
		{"another", "a: 1\n", "a: 1\nkey: v\n"},
		{"no end", "a: 1 # why", "a: 1 # why\nkey: v\n"},
		{"replaced", "key:  old # why\nb: [x]\n", "key: v\nb: [x]\n"},
		{"only comments", "# key: x\n", "# key: x\nkey: v\n"},
		{"below another key", "a:\n  key: x\n", "a:\n  key: x\nkey: v\n"},
		{"in braces", "{a: 1}\n", ""},
		{"several lines", "key:\n  - x\n", ""},
		{"in a text", "a: |\n  b\nkey: 1\n", "a: |\n  b\nkey: v\n"},
		{"an end of the document", "a: 1\n...\n", ""},
		{"in a text that isn't indented", "a: \"b\nkey: x\n\"\nkey: 1\n", ""},
		{"a list", "- a\n", ""},
		{"broken", "a: [\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := withSetting([]byte(c.was), "key", "v")
			if string(got) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
