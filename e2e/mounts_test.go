//go:build linux

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// withMount is a workshop of one worker with one mount.
func withMount(mount string) map[string]string {
	return map[string]string{
		"workshop.yaml":     "workshop:\n  name: refused\n  container:\n    image: host\n    mounts:\n      - " + mount + "\n  workers: [worker]\n",
		"workers/worker.md": "---\nname: worker\ndescription: Tries a mount.\nallowed-tools: []\n---\nYou run what the test says.\n",
	}
}

func TestB07_RefusedSources(t *testing.T) {
	home := t.TempDir()
	_ = os.Chmod(filepath.Dir(home), 0o755)
	for _, dir := range []string{".ssh", ".aws", ".config/gcloud", ".config/workshop", "project"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh/id_ed25519"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	scenario.Own(t, home)
	outside := func(source string) string {
		return "{source: \"" + source + "\", target: /in, outside_project: true}"
	}
	for name, c := range map[string]struct {
		mount string
		setup func(t *testing.T, dir string)
	}{
		"root":               {mount: outside("/")},
		"home":               {mount: outside("~")},
		"above home":         {mount: outside(filepath.Dir(home))},
		"ssh key":            {mount: outside("~/.ssh/id_ed25519")},
		"aws":                {mount: outside("~/.aws")},
		"gcloud":             {mount: outside("~/.config/gcloud")},
		"workshop's own":     {mount: "{source: ~/.config/workshop, target: /in, mode: rw, outside_project: true}"},
		"etc":                {mount: outside("/etc")},
		"inside etc":         {mount: outside("/etc/ssl")},
		"proc":               {mount: outside("/proc")},
		"sys":                {mount: outside("/sys/fs")},
		"dev":                {mount: outside("/dev")},
		"run":                {mount: outside("/run")},
		"docker data":        {mount: outside("/var/lib/docker")},
		"docker.sock":        {mount: outside("/var/run/docker.sock")},
		"outside, not said":  {mount: "../other:/in"},
		"docker.sock linked": {mount: "./link:/in", setup: func(t *testing.T, dir string) { symlink(t, "/var/run/docker.sock", dir+"/link") }},
		"ssh by symlink":     {mount: "{source: ./link, target: /in, outside_project: true}", setup: func(t *testing.T, dir string) { symlink(t, home+"/.ssh", dir+"/link") }},
		"etc by symlink":     {mount: "./link:/in", setup: func(t *testing.T, dir string) { symlink(t, "/etc", dir+"/link") }},
		"a socket in it": {mount: "./in:/in", setup: func(t *testing.T, dir string) {
			l, err := net.Listen("unix", mkdir(t, dir, "in")+"/s.sock")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}},
		"a fifo in it": {mount: "./in:/in", setup: func(t *testing.T, dir string) {
			if err := unix.Mkfifo(mkdir(t, dir, "in")+"/fifo", 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		"a mount in it": {mount: "./in:/in", setup: func(t *testing.T, dir string) {
			below := mkdir(t, dir, "in/below")
			if err := unix.Mount("tmpfs", below, "tmpfs", 0, "size=64k"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(below, unix.MNT_DETACH) })
		}},
		"missing ro source": {mount: "./missing:/in"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario.At(t, "a source that leads out is refused before anything starts", withMount(c.mount))
			s.Env = []string{"HOME=" + home}
			mkdir(t, s.Dir, "../other")
			if c.setup != nil {
				c.setup(t, s.Dir)
				s.Chown()
			}
			d := s.Run("up")
			if d.Code != 3 && d.Code != 4 && d.Code != 1 {
				t.Errorf("exit code %d\n%s", d.Code, d.Err)
			}
			if !strings.Contains(d.Err, "error") || left(s) != nil {
				t.Errorf("half-started: %v\n%s", left(s), d.Err)
			}
		})
	}
	t.Run("control", func(t *testing.T) {
		s := scenario.At(t, "an ordinary source outside the project comes up when it is said", withMount(outside(filepath.Join(home, "project"))))
		s.Env = []string{"HOME=" + home}
		_ = os.Chmod(home, 0o755)
		_ = os.Chmod(filepath.Join(home, "project"), 0o755)
		s.Up()
		s.Sees("worker", "mount /in -> ro")
	})
}

// left is what exists of a project on the engine, or nil.
func left(s *scenario.Scenario) []string {
	if l := s.Leftovers(); len(l) > 0 {
		return l
	}
	return nil
}

func symlink(t *testing.T, to, at string) {
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir, name string) string {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestB08_NothingPlantedForTheHost(t *testing.T) {
	s := scenario.New(t, "mounts", "a worker changes nothing under its rw mount that the host would run, and what no mount can hold is named")
	toBePlanted(s)
	s.Up()
	plantsNothing(s)
}

// toBePlanted fills the worker's rw mount of testdata/mounts with what the host would run.
func toBePlanted(s *scenario.Scenario) {
	s.Helper()
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", filepath.Join(s.Dir, "out")}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			s.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("init", "-q", "--bare", "mirror")
	s.Write("out/.git/hooks/pre-commit", "#!/bin/sh\n")
	s.Write("out/.vscode/tasks.json", "{}")
	s.Write("out/.envrc", "export A=1\n")
	s.Chown()
}

// plantsNothing checks that the worker changes nothing of it; at the end it is down.
func plantsNothing(s *scenario.Scenario) {
	s.Helper()
	s.Sees("worker",
		"write /workspace/out/file -> ok",
		"write /workspace/out/.git/hooks/pre-commit -> EROFS|EACCES", "write /workspace/out/.git/config -> EROFS|EACCES", "write /workspace/out/.git/new -> EROFS|EACCES",
		"write /workspace/out/.claude/settings.json -> EROFS|EACCES", "write /workspace/out/.vscode/tasks.json -> EROFS|EACCES",
		"rename /workspace/out/.git /workspace/out/.git2 -> EBUSY", "rename /workspace/out/.claude /workspace/out/.claude2 -> EBUSY", "remove /workspace/out/.vscode -> EBUSY|ENOTEMPTY",
		"write /workspace/out/mirror/config -> EROFS|EACCES", "rename /workspace/out/mirror /workspace/out/mirror2 -> EBUSY",
		"stat /workspace/out/.husky -> ENOENT")
	if s.Exists("out/.husky") || s.Exists("out/.idea") {
		s.Error("something was created on the host to protect it")
	}
	s.Expect(0, "ps")
	s.Sees("worker", `write /workspace/out/.envrc text="export A=2\n" -> ok`, `write /workspace/out/.mcp.json text="{}" -> ok`)
	// What git takes for a repository, and what nobody looks through to its end.
	s.Expect(0, "exec", "worker", "--", "sh", "-ec", `cd /workspace/out
		mkdir -p cache/objects cache/refs; echo ref: refs/heads/main >cache/HEAD; : >cache/config
		name=$(printf %0200d 0); for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do mkdir $name; cd $name; done`)
	d := s.Run("ps")
	for _, want := range []string{".envrc", ".mcp.json", "new since the first `up`: out/cache (1 file) (B8)", "not fully checked: out/000"} {
		if all := d.Out + d.Err; !strings.Contains(all, want) {
			s.Errorf("ps doesn't say %q:\n%s", want, all)
		}
	}
	if d := s.Run("up", "--strict"); d.Code != 4 || !strings.Contains(d.Out+d.Err, "nothing was started") {
		s.Errorf("up --strict: exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	if d := s.Run("up"); d.Code != 0 || !strings.Contains(d.Out+d.Err, "is not fully checked") {
		s.Errorf("up: exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	s.Expect(4, "ps", "--strict")
	if d := s.Run("down", "--strict"); d.Code != 4 || !strings.Contains(d.Out+d.Err, "not fully checked") {
		s.Errorf("down --strict: exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
}

func TestB08_BaselineStays(t *testing.T) {
	s := scenario.At(t, "what a worker planted is named until somebody takes it, whatever it does to what runs and to the workshop's file", withMount("{source: ./, target: /workspace, mode: rw}"))
	s.Write("workers/worker.md", "---\nname: worker\ndescription: Reads.\nallowed-tools: [Read]\n---\nYou read.\n")
	s.Chown()
	s.Up()
	s.Expect(0, "ps", "--strict")
	s.Sees("worker", `write /workspace/.envrc text="export A=2\n" -> ok`)
	s.Stop("worker")
	if d := s.Run("call", "worker", "read_file", "path=/workspace/.envrc"); d.Code != 4 || !strings.Contains(d.Err, "nothing was started") || !strings.Contains(d.Err, "--accept-watched") {
		t.Errorf("call: exit code %d\n%s", d.Code, d.Err)
	}
	s.Expect(0, "up")
	s.Expect(4, "ps", "--strict")
	s.Expect(0, "up", "--accept-watched")
	s.Expect(0, "ps", "--strict")

	s.Expect(0, "exec", "worker", "--", "sh", "-ec", "echo >/workspace/.mcp.json; rm /workspace/workshop.yaml")
	for _, command := range []string{"ps", "down"} {
		if d := s.Run(command, "--strict"); d.Code != 4 || !strings.Contains(d.Err, "new since `up --accept-watched`: .mcp.json") || !strings.Contains(d.Err, "removed since `up --accept-watched`: workshop.yaml") {
			t.Errorf("%s: exit code %d\n%s", command, d.Code, d.Err)
		}
	}
	if l := left(s); l != nil {
		t.Errorf("left: %v", l)
	}
	s.Expect(4, "ps", "--strict")
	s.Expect(0, "down", "--accept-watched")
	s.Expect(0, "ps", "--strict")
}

// The control of each edit is the same file without its read-only mount.
func TestB08_OwnEdits(t *testing.T) {
	s := scenario.At(t, "an edit of a file that no worker could write isn't called a worker's", withMount("{source: ./, target: /workspace, mode: rw}\n      - ./workshop.yaml:/workspace/workshop.yaml\n      - ./workers:/workspace/workers"))
	mkdir(t, s.Dir, ".vscode")
	s.Write(".envrc", "")
	s.Chown()
	s.Up()
	s.Sees("worker", "write /workspace/workshop.yaml -> EROFS", "rename /workspace/workshop.yaml /workspace/other.yaml -> EBUSY", "rename /workspace/workers /workspace/workers2 -> EBUSY",
		`write /workspace/.envrc text="" -> ok`)
	file := s.Read("workshop.yaml")
	s.Write("workshop.yaml", file+"  # mine\n")
	s.Write("workers/worker.md", s.Read("workers/worker.md")+"Mine.\n")
	s.Write(".vscode/tasks.json", "{}")
	s.Expect(0, "ps", "--strict")
	s.Expect(0, "up", "--strict")
	s.Write(".envrc", "export A=1\n")
	if d := s.Run("ps", "--strict"); d.Code != 4 || strings.Count(d.Err, "since the first `up`:") != 1 || !strings.Contains(d.Err, "changed since the first `up`: .envrc") {
		t.Errorf("exit code %d\n%s", d.Code, d.Err)
	}
	s.Write(".envrc", "")

	s.Write("workshop.yaml", strings.Replace(file, "      - ./workshop.yaml:/workspace/workshop.yaml\n", "", 1))
	s.Expect(0, "up", "--strict")
	s.Write("workshop.yaml", s.Read("workshop.yaml")+"  # a worker's?\n")
	if d := s.Run("ps", "--strict"); d.Code != 4 || !strings.Contains(d.Err, "changed since the first `up`: workshop.yaml") {
		t.Errorf("exit code %d\n%s", d.Code, d.Err)
	}
}

// TestB08_NoSaveOverAWorkersLines: a line isn't saved into a file that a worker may have
// changed: what it wrote there is neither taken for "the file has it" nor for the person's.
func TestB08_NoSaveOverAWorkersLines(t *testing.T) {
	s := scenario.At(t, "the person's deny isn't swallowed by one that a worker wrote and nothing loaded", withMount("{source: ./, target: /workspace, mode: rw}\n    network: {mode: restricted, allow: [a.example.org], deny: [\"${BAD:-b.example.org}\"]}"))
	s.Internet.Answer("a.example.org", testnet.A(testnet.Allowed))
	s.Chown()
	s.Up()
	if d := s.Expect(0, "firewall", "show"); !strings.Contains(d.Out, "the policy of the file") || strings.Contains(d.Err, "worker") {
		t.Errorf("show: %s%s", d.Out, d.Err)
	}
	s.Sees("worker", `write /workspace/.env text="BAD=a.example.org" -> ok`)
	if d := s.Run("firewall", "deny", "a.example.org", "--save"); d.Code != 4 || !strings.Contains(d.Err, "a worker may have written that (B8)") {
		t.Errorf("exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	if d := s.Expect(0, "firewall", "show"); !strings.Contains(d.Out, "not the policy of the file") || !strings.Contains(d.Err, "a worker may have written what changed in .env") {
		t.Errorf("show: %s%s", d.Out, d.Err)
	}
	s.Expect(0, "firewall", "deny", "a.example.org")
	s.Sees("worker", "lookup a.example.org -> NXDOMAIN")
}

func TestB08_GitReadWrite(t *testing.T) {
	s := scenario.At(t, "git: rw lets commits through and hooks not", withMount("{source: ./out, target: /workspace/out, mode: rw, git: rw}"))
	mkdir(t, s.Dir, "out/.git/hooks")
	s.Write("out/.git/hooks/pre-commit", "#!/bin/sh\n")
	s.Write("out/.git/HEAD", "ref: refs/heads/main\n")
	s.Chown()
	s.Up()
	s.Sees("worker", "write /workspace/out/.git/index -> ok", "write /workspace/out/.git/hooks/pre-commit -> EROFS", "write /workspace/out/.git/hooks/post-merge -> EROFS",
		"rename /workspace/out/.git /workspace/out/.git2 -> EBUSY", "rename /workspace/out/.git/hooks /workspace/out/.git/hooks2 -> EBUSY")
}

func TestB09_ExcludeIsACopy(t *testing.T) {
	s := scenario.New(t, "mounts", "a mount with exclude is a read-only copy without the matches")
	s.Up()
	hasACopy(s)
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "target: /copy,", "target: /copy, mode: rw,", 1))
	s.Expect(3, "validate")
}

// hasACopy checks the mount of testdata/mounts that has an exclude.
func hasACopy(s *scenario.Scenario) {
	s.Helper()
	s.Sees("worker", "list /copy -> file.txt,keys", "read /copy/file.txt -> ok", "read /copy/dotenv -> ENOENT", "list /copy/keys -> empty", "write /copy/file.txt -> EROFS|EACCES", "mount /copy -> ro",
		"list /workspace/in -> dotenv,file.txt,keys") // the control: without exclude all is there
	for _, m := range s.Inspect("worker").Mounts {
		if m.Target == "/copy" && (scenario.DockerAPI() && m.Type != "volume" || strings.HasPrefix(m.Source, s.Dir)) {
			s.Errorf("/copy is a %s of %s", m.Type, m.Source)
		}
	}
}

func TestB09_ChangedFilesAreCopiedAgain(t *testing.T) {
	s := scenario.New(t, "mounts", "a worker doesn't go on with a copy of files that changed or are gone, under up and under plain Compose")
	s.Up()
	s.Sees("worker", "list /copy -> file.txt,keys")
	s.Write("in/new.txt", "new")
	s.Up()
	s.Sees("worker", "list /copy -> file.txt,keys,new.txt", "read /copy/dotenv -> ENOENT")
	before := s.Inspect("worker").ID
	s.Up()
	if after := s.Inspect("worker").ID; after != before {
		t.Error("without a change, the worker was made anew")
	}
	if err := os.Remove(filepath.Join(s.Dir, "in/new.txt")); err != nil {
		t.Fatal(err)
	}
	if scenario.TheEngine() != scenario.Docker { // which alone has plain Compose
		s.Up()
		s.Sees("worker", "list /copy -> file.txt,keys")
		return
	}
	s.Expect(1, "compile", "--load") // not below a worker that has the former copy
	s.Expect(0, "down")
	composeUp(t, s)
	s.Eventually("the worker runs", func() bool { return s.Probe("worker", "list /copy")[0].Seen == "file.txt,keys" })
}
