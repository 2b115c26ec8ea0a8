package hostpath

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// environment gives every variable of the list a path of its own.
var environment = map[string]string{
	"AWS_CONFIG_FILE": "/e/aws/config", "AWS_SHARED_CREDENTIALS_FILE": "/e/awskeys/credentials", "CARGO_HOME": "/e/cargo",
	"CLOUDSDK_CONFIG": "/e/cloudsdk", "CONTAINER_HOST": "unix:///e/podman/engine", "DOCKER_CONFIG": "/e/docker",
	"DOCKER_HOST": "unix:///e/dockerd/engine", "GH_CONFIG_DIR": "/e/ghdir", "GIT_CONFIG_GLOBAL": "/e/gitglobal/config", "GNUPGHOME": "/e/gnupg",
	"GOOGLE_APPLICATION_CREDENTIALS": "/e/google/key.json", "KUBECONFIG": "/e/kube/one:/e/kube2/two", "NETRC": "/e/netrc/file",
	"NPM_CONFIG_USERCONFIG": "/e/npmupper/npmrc", "REGISTRY_AUTH_FILE": "/e/registry/auth.json", "SSH_AUTH_SOCK": "/e/agent/socket",
	"XDG_CACHE_HOME": "/e/cache", "XDG_CONFIG_HOME": "/e/config", "XDG_DATA_HOME": "/e/data", "XDG_RUNTIME_DIR": "/e/runtime",
	"XDG_STATE_HOME": "/e/state", "npm_config_userconfig": "/e/npmlower/npmrc",
}

func caller(home string) Caller {
	return Caller{Homes: []string{home}, Lookup: func(name string) (string, bool) { v, ok := environment[name]; return v, ok }}
}

// B7, entry by entry: a source is refused that is one, contains one or lies
// inside one.
func TestEveryEntry(t *testing.T) {
	tests := []struct {
		entry string
		paths string // each is refused for this entry's sake
	}{
		{"/dev", "/dev /dev/shm/x"},
		{"/etc", "/etc /etc/ssl/certs"},
		{"/proc", "/proc /proc/1/root"},
		{"/run", "/run /run/user/1000"},
		{"/sys", "/sys /sys/fs/cgroup"},
		{"/var/lib/containerd", "/var/lib/containerd /var/lib/containerd/x"},
		{"/var/lib/containers", "/var/lib/containers /var/lib/containers/storage"},
		{"/var/lib/docker", "/var/lib/docker /var/lib/docker/volumes/x/_data"},
		{"/var/lib/kubelet", "/var/lib/kubelet /var/lib/kubelet/pods"},
		{"/var/run", "/var/run /var/run/x"},

		{"~/.aws", "~/.aws ~/.aws/credentials"},
		{"~/.cargo/credentials*", "~/.cargo ~/.cargo/credentials ~/.cargo/credentials.toml ~/.cargo/credentials.d/x"},
		{"~/.config/containers", "~/.config/containers ~/.config/containers/auth.json"},
		{"~/.config/gcloud", "~/.config/gcloud ~/.config/gcloud/credentials.db"},
		{"~/.config/gh", "~/.config/gh ~/.config/gh/hosts.yml"},
		{"~/.config/git", "~/.config/git ~/.config/git/credentials"},
		{"~/.docker", "~/.docker ~/.docker/config.json"},
		{"~/.git-credentials", "~/.git-credentials"},
		{"~/.gitconfig", "~/.gitconfig"},
		{"~/.gnupg", "~/.gnupg ~/.gnupg/private-keys-v1.d"},
		{"~/.kube", "~/.kube ~/.kube/config"},
		{"~/.local/share/containers", "~/.local/share/containers ~/.local/share/containers/storage"},
		{"~/.netrc", "~/.netrc"},
		{"~/.npmrc", "~/.npmrc"},
		{"~/.ssh", "~/.ssh ~/.ssh/id_ed25519"},
		{"~/.cache/workshop", "~/.cache/workshop ~/.cache/workshop/run ~/.cache"},
		{"~/.config/workshop", "~/.config/workshop ~/.config/workshop/config.yaml"},
		{"~/.local/share/workshop", "~/.local/share/workshop ~/.local/share/workshop/models"},
		{"~/.local/state/workshop", "~/.local/state/workshop ~/.local/state/workshop/audit ~/.local/state"},

		{"$AWS_CONFIG_FILE", "/e/aws/config /e/aws"},
		{"$AWS_SHARED_CREDENTIALS_FILE", "/e/awskeys/credentials /e/awskeys"},
		{"$CARGO_HOME/credentials*", "/e/cargo /e/cargo/credentials.toml"},
		{"$CLOUDSDK_CONFIG", "/e/cloudsdk /e/cloudsdk/x"},
		{"$CONTAINER_HOST", "/e/podman/engine /e/podman"},
		{"$DOCKER_CONFIG", "/e/docker /e/docker/config.json"},
		{"$DOCKER_HOST", "/e/dockerd/engine /e/dockerd"},
		{"$GH_CONFIG_DIR", "/e/ghdir /e/ghdir/hosts.yml"},
		{"$GIT_CONFIG_GLOBAL", "/e/gitglobal/config /e/gitglobal"},
		{"$GNUPGHOME", "/e/gnupg /e/gnupg/x"},
		{"$GOOGLE_APPLICATION_CREDENTIALS", "/e/google/key.json /e/google"},
		{"$KUBECONFIG", "/e/kube/one /e/kube2/two /e/kube2"},
		{"$NETRC", "/e/netrc/file /e/netrc"},
		{"$NPM_CONFIG_USERCONFIG", "/e/npmupper/npmrc /e/npmupper"},
		{"$REGISTRY_AUTH_FILE", "/e/registry/auth.json /e/registry"},
		{"$SSH_AUTH_SOCK", "/e/agent/socket /e/agent"},
		{"$XDG_CONFIG_HOME/containers", "/e/config/containers /e/config/containers/auth.json"},
		{"$XDG_CONFIG_HOME/gcloud", "/e/config/gcloud /e/config/gcloud/x"},
		{"$XDG_CONFIG_HOME/gh", "/e/config/gh /e/config/gh/hosts.yml"},
		{"$XDG_CONFIG_HOME/git", "/e/config/git /e/config/git/config"},
		{"$XDG_DATA_HOME/containers", "/e/data/containers /e/data/containers/storage"},
		{"$XDG_RUNTIME_DIR", "/e/runtime /e/runtime/bus"},
		{"$npm_config_userconfig", "/e/npmlower/npmrc /e/npmlower"},
		{"$XDG_CACHE_HOME/workshop", "/e/cache/workshop /e/cache/workshop/run /e/cache"},
		{"$XDG_CONFIG_HOME/workshop", "/e/config/workshop /e/config/workshop/config.yaml"},
		{"$XDG_DATA_HOME/workshop", "/e/data/workshop /e/data/workshop/models"},
		{"$XDG_RUNTIME_DIR/workshop", "/e/runtime/workshop /e/runtime/workshop/x"},
		{"$XDG_STATE_HOME/workshop", "/e/state/workshop /e/state/workshop/audit /e/state"},
	}
	var rows []string
	for _, tt := range tests {
		rows = append(rows, tt.entry)
		t.Run(tt.entry, func(t *testing.T) {
			if !slices.Contains(slices.Concat(places, own), tt.entry) {
				t.Error("it is not on the list")
			}
			// Homes: the caller's, root's, another user's, one that isn't known.
			for _, home := range []string{"/h/me", "/root", "/home/other", "/Users/other", "~"} {
				l := For(caller("/h/me"))
				for p := range strings.FieldsSeq(tt.paths) {
					if p = strings.Replace(p, "~", home, 1); l.Why(p) == "" {
						t.Errorf("%s is not refused", p)
					}
				}
			}
		})
	}
	doc, err := os.ReadFile("../../docs/mounts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range slices.Concat(places, own) {
		if !slices.Contains(rows, entry) {
			t.Errorf("%s has no row here", entry)
		}
		if variable, ok := strings.CutPrefix(entry, "$"); ok {
			entry, _, _ = strings.Cut(variable, "/")
		}
		if !strings.Contains(string(doc), "`"+entry+"`") {
			t.Errorf("docs/mounts.md doesn't have `%s`", entry)
		}
	}
}

func TestWhy(t *testing.T) {
	l := For(caller("/h/me"))
	for _, tt := range []struct{ p, want string }{
		{"/", "is the whole file system"},
		{"/home", "is the directory of the home directories"},
		{"/h/me", "is a home directory"},
		{"/h", "contains a home directory"},
		{"/home/you", "is a home directory"},
		{"/root", "is a home directory"},
		{"~", "is a home directory"},
		{"/etc", "is protected"},
		{"/etc/ssl", "lies inside /etc"},
		{"/h/me/.ssh/id", "lies inside /h/me/.ssh"},
		{"/home/you/.ssh/id", "lies inside /home/you/.ssh"},
		{"/h/me/.config", "contains /h/me/.config/containers"},
		{"/home/you/.local", "contains /home/you/.local/share/containers"},
		{"/srv/docker.sock", "is an engine's socket"},
		{"/srv/x/podman.sock", "is an engine's socket"},
		{"/var", "contains /var/lib/containerd"},
		{"/e", "contains /e/aws/config"},
		{"/h/me/.cargo/registry", ""},
		{"/h/me/.config/nvim", ""},
		{"/h/me/.sshx", ""},
		{"/h/me/project", ""},
		{"/home/you/project", ""},
		{"/e/config/nvim", ""},
		{"/etcetera", ""},
		{"/tmp", ""},
		{"/var/lib/x", ""},
	} {
		if got := l.Why(tt.p); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.p, got, tt.want)
		}
	}
}

// What variables name in the project, or around it, is the project's; what is
// workshop's own is refused there too.
func TestVariablesAndTheProject(t *testing.T) {
	for _, tt := range []struct {
		variable, value, p string
		refused            bool
	}{
		{"KUBECONFIG", "/work/p/kubeconfig", "/work/p", false},
		{"KUBECONFIG", "/work/p/kubeconfig", "/work/p/kubeconfig", false},
		{"KUBECONFIG", "relative", "/work/p", false},
		{"KUBECONFIG", "/elsewhere/k", "/elsewhere/k", true},
		{"DOCKER_CONFIG", "/work", "/work/p", false},
		{"DOCKER_HOST", "tcp://198.51.100.1:2375", "/198.51.100.1", false},
		{"XDG_CONFIG_HOME", "/work/p/.config", "/work/p", true},
		{"XDG_STATE_HOME", "/work/p", "/work/p/workshop/audit", true},
		{"XDG_RUNTIME_DIR", "/odd:name", "/odd:name/x", true},
	} {
		l := For(Caller{Project: "/work/p", Lookup: func(name string) (string, bool) { return tt.value, name == tt.variable }})
		if got := l.Why(tt.p); (got != "") != tt.refused {
			t.Errorf("%s=%s: %s: %q, want refused %v", tt.variable, tt.value, tt.p, got, tt.refused)
		}
	}
}

// The pattern refuses what the list does for whoever calls, and nothing else.
func TestPattern(t *testing.T) {
	re := regexp.MustCompile(Pattern() + `$`)
	for p, want := range map[string]bool{
		"/": true, "/etc": true, "/etc/": true, "/etc/ssl": true, "/var": true, "/var/lib": true, "/home": true, "/root": true, "~": true, "~/": true,
		"~/.ssh/id": true, "~/.config": true, "~/.config/workshop/x": true, "~/.cargo/credentials.toml": true, "/srv/docker.sock": true,
		"": false, "./src": false, "~/project": false, "~/.config/nvim": false, "/etcetera": false, "/srv": false, "/var/www": false, "~/.cargo/registry": false,
	} {
		if got := re.MatchString(p); got != want {
			t.Errorf("%q: %v, want %v", p, got, want)
		}
		if want && For(Caller{}).Why(path.Clean(p)) == "" {
			t.Errorf("%q: the list doesn't refuse it", p)
		}
	}
}

func FuzzWhy(f *testing.F) {
	f.Add("/home/me/.ssh/../x")
	f.Add("~/.cargo/credentials")
	l := For(caller("/h/me"))
	f.Fuzz(func(t *testing.T, s string) {
		p := path.Clean("/" + s)
		for _, dir := range []string{"/etc", "/h/me/.ssh", "/home/x/.config/workshop"} {
			if subpath.Within(p, dir) && l.Why(p) == "" {
				t.Errorf("%q passes", p)
			}
		}
	})
}
