//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestExamplesComeUp: every example with a workshop.yaml comes up, its workers
// run, and goes down without a trace.
func TestExamplesComeUp(t *testing.T) {
	root := scenario.TheLab(t).Root
	files, err := filepath.Glob(filepath.Join(root, "examples/*/workshop.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("examples: %v %v", files, err)
	}
	// what an example needs of the machine
	author := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(author, []byte("[user]\n\tname = Dev\n\temail = dev@example.org\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	scenario.Own(t, filepath.Dir(author))
	environment := map[string][]string{
		"full":         {"GITHUB_TOKEN=for-the-example", "WORKER_TAG=1.4", "SCANNER_TOOLS=none", "ANTHROPIC_API_KEY=for-the-example", "GIT_CONFIG_GLOBAL=" + author},
		"egress-proxy": {"SQUID_LOGIN=for:the-example"},
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			s := scenario.Example(t, name, "the example comes up as it stands")
			s.Env = append(environment[name], "XDG_RUNTIME_DIR="+runtimeDir(t, s))
			models := strings.Contains(s.Read("workshop.yaml"), "  models:")
			for _, ref := range s.LocalImages() {
				if !models {
					importImage(t, s, ref)
				}
			}
			s.Expect(0, "validate")
			s.Expect(0, "compile")
			s.Expect(0, "compile", "--check")
			if models { // which nobody has at hand
				s.Env = append(s.Env, "XDG_DATA_HOME="+s.TempDir())
				says(s, s.Expect(4, "up", "--yes"), "is not there")
				return
			}
			if !scenario.DockerAPI() && strings.Contains(s.Read("workshop.yaml"), "build: {") {
				says(s, s.Expect(4, "up", "--yes"), "has `build:`, which needs the docker engine")
				return
			}
			flags := []string{"--yes"}
			if strings.Contains(s.Read("workshop.yaml"), "credential: ") {
				key, fingerprint, agent := userAgent(s)
				public, err := os.ReadFile(key + ".pub")
				if err != nil {
					t.Fatal(err)
				}
				dir := s.TempDir()
				known := userFile(t, dir, "known_hosts", "github.com "+string(public)) // whichever key
				file := userFile(t, dir, "credentials.yaml", "anthropic: {env: ANTHROPIC_API_KEY, hosts: [api.anthropic.com], as: {header: x-api-key}}\n"+
					"squid: {env: SQUID_LOGIN, hosts: [\"squid.example:3128\"], as: proxy}\n"+
					"work-key: {ssh_agent: \""+fingerprint+"\", hosts: [github.com], known_hosts: "+known+"}\n")
				s.Env = append(s.Env, "SSH_AUTH_SOCK="+agent)
				flags = append(flags, "--credentials", file)
				flags = append(flags, "--accept-credentials", digestOf(s, flags...))
			}
			s.Up(flags...)
			for service, c := range s.Containers() {
				if c.State != "running" {
					t.Errorf("%s is %s\n%s", service, c.State, s.Logs(service))
				}
			}
			s.Expect(0, "down", "--volumes")
			if l := left(s); l != nil {
				t.Errorf("down left %v", l)
			}
		})
	}
}
