//go:build linux

package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// tool is a program as people use it: what it says of a refusal, and what it
// does once the host is allowed.
type tool struct {
	name    string
	needs   []string // programs of this machine, as a worker finds them
	command string
	hosts   []string // in the order in which they are found to be missing
	// shows is what the program itself says of the refusal.
	shows string
	// tells says that the program shows the guard's reason and command.
	tells bool
	tries time.Duration // how long it tries again
	want  string
}

// soon is what a program may take to say what it was told, and to end: a second,
// and what a busy machine takes to run it.
const soon = 3 * time.Second

var tools = []tool{
	{
		name: "curl", needs: []string{"curl"}, command: "curl -sS https://denied.example.org/",
		hosts: []string{"denied.example.org"}, shows: "response 403", want: `"sni":"denied.example.org"`,
	},
	{
		name: "curl without TLS", needs: []string{"curl"}, command: "curl -sSf --noproxy '*' http://allowed.example.net/",
		hosts: []string{"allowed.example.net"}, shows: "Could not resolve host", want: `"host":"allowed.example.net"`,
	},
	{
		name: "git", needs: []string{"git"}, command: "cd /tmp && git clone https://" + testnet.GitHost + "/greeting.git && cat greeting/greeting.txt",
		hosts: []string{testnet.GitHost}, shows: "response 403", want: testnet.Greeting,
	},
	{
		name: "npm", needs: []string{"npm", "node"}, command: `cd /tmp && npm install greeting && node -p "require('greeting')"`,
		hosts: []string{testnet.NPMHost}, shows: "npm error 403", tells: true, want: testnet.Greeting,
	},
	{
		// pip would try five times more, with pauses of 7.5 s together; each says why.
		name: "pip", needs: []string{"pip3", "python3"},
		command: "cd /tmp && python3 -m pip install --retries 1 --no-cache-dir --target py greeting && PYTHONPATH=py python3 -c 'import greeting; print(greeting.text)'",
		hosts:   []string{testnet.PyPIHost, testnet.FilesHost}, shows: "ProxyError", tells: true, tries: time.Second, want: testnet.Greeting,
	},
}

// needs requires programs of this machine in directories that are on PATH of workers with
// `image: host`.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		testutil.Require(t, slices.ContainsFunc(filepath.SplitList(compose.HostPath), func(dir string) bool {
			_, err := exec.LookPath(filepath.Join(dir, program))
			return err == nil
		}), "there is no "+program+" where a worker finds it")
	}
}

// A program that hits a denial shows within a second what was refused, and a person
// reads the command that allows it after its end, and the command is right. The programs are those of this
// machine; a worker with `image: host` has them.
func TestTools(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := by(scenario.New(t, "tools", "curl, git, npm and pip: what was refused is shown within a second, the hint has the command, the command does it, and then the tool works"))
	s.Internet.Answer("allowed.example.net", testnet.A(testnet.Allowed))
	s.Up()
	for _, x := range tools {
		t.Run(x.name, func(t *testing.T) {
			needs(t, x.needs...)
			for _, host := range x.hosts {
				allow := "workshop firewall allow " + host + " --worker builder"
				w := watch(s, "builder", x.command)
				refused := w.refused(t, s, host)
				ended, _ := w.at(toolEnded)
				if w.code == 0 || !strings.Contains(w.text(), x.shows) {
					t.Fatalf("exit code %d of what is refused, or no %q:\n%s", w.code, x.shows, w.text())
				}
				if shown, ok := w.at(host + ":443 is not allowed in this workshop: do not retry, tell the person"); x.tells && (!ok || w.after(refused, shown) > soon) {
					t.Errorf("it doesn't show the guard's words within %v:\n%s", soon, w.text())
				}
				what, ok := w.at("the guard refused " + host)
				if _, command := w.at("`" + allow + "`"); !ok || !command {
					t.Fatalf("no hint with %q:\n%s", allow, w.text())
				}
				t.Logf("%s: %v from the refusal to the end of the program, %v more to the hint", host, w.after(refused, ended).Round(time.Millisecond), what.Sub(ended).Round(time.Millisecond))
				if what.Sub(ended) > time.Second {
					t.Errorf("the hint came late:\n%s", w.text())
				}
				if w.after(refused, ended) > x.tries+soon {
					t.Errorf("the program went on for %v:\n%s", w.after(refused, ended), w.text())
				}
				s.Expect(0, strings.Fields(allow)[1:]...)
			}
			w := watch(s, "builder", x.command)
			if _, hint := w.at("hint:"); w.code != 0 || hint || !strings.Contains(w.text(), x.want) {
				t.Errorf("after the commands: exit code %d\n%s", w.code, w.text())
			}
		})
	}
}

// What was refused is said whatever the exit code is: ssh always fails with 255, and
// curl shows the guard's answer and succeeds.
func TestExecSaysWhatWasRefused(t *testing.T) {
	scenario.Once(t, "the command line says it, whoever runs it")
	s := scenario.New(t, "tools", "exec names what was refused after 255, and after a success whose output is the guard's answer")
	s.Up()
	for _, x := range []struct {
		name, command string
		code          int
		err           string // one line of it
	}{
		{"ssh", "ssh git@s1.example.org", 255, "- s1.example.org:22\n"},
		{"ssh to the output", "ssh git@s2.example.org 2>&1", 255, "- s2.example.org:22\n"},
		{"255", "getent hosts s3.example.org; exit 255", 255, "workshop: hint: the guard refused s3.example.org; "},
		{"success", "curl -sS http://s4.example.org/", 0, "workshop: refused s4.example.org:80 (not allowed); to allow it: `workshop firewall allow s4.example.org --worker builder`\n"},
		{"success without the answer", "getent hosts s5.example.org || true", 0, ""},
		{"a signal", "getent hosts s6.example.org; exit 130", 130, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := s.Expect(x.code, "exec", "builder", "--", "sh", "-c", x.command)
			if !strings.Contains(d.Err, x.err) || x.code == 0 && d.Err != x.err || strings.Count(d.Err, "workshop: ") > 1 {
				t.Errorf("got\n%swant %q", d.Err, x.err)
			}
		})
	}
}

// A clone is a directory that the next `up` holds read-only (B8), and so makes
// its worker anew; a line for the guard doesn't wait for that.
func TestB27_SaveAfterAClone(t *testing.T) {
	s := by(scenario.New(t, "tools", "a worker cloned a repository: --save and reload still give the guard its lines, touch no container, and say what is left for up"))
	s.Write("out/.keep", "")
	s.Up()
	before := lives(s)
	s.Expect(0, "exec", "builder", "--", "git", "init", "-q", "/workspace/out/cloned")
	d := s.Expect(0, "firewall", "allow", testnet.GitHost, "--save")
	says(s, d, "reloaded: generation ", "left for `workshop up`", "recreate builder (read-only: + /workspace/out/cloned/.git")
	s.Sees("builder", "http https://"+testnet.GitHost+"/greeting.git/HEAD ca=/ca.pem -> 200")
	says(s, s.Expect(0, "firewall", "allow", testnet.GitHost), "is allowed already")
	goOn(s, before, "builder", "room", "guard")

	s.Expect(0, "firewall", "deny", testnet.GitHost)
	says(s, s.Expect(56, "exec", "builder", "--", "curl", "-sS", "https://"+testnet.GitHost), testnet.GitHost+":443 (denied by a live change)", "`workshop firewall reload --reset` drops them")
}
