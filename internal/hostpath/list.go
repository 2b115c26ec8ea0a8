package hostpath

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// places are refused paths: a source must not be one, contain one or be inside one. ~
// is each home directory of the caller; $NAME is the variable's value, if it is an
// absolute path, a list of them (KUBECONFIG) or a unix:// address; a trailing * matches
// any rest of the name.
//
// A place by a variable is ignored if it is inside the project or contains it: the
// project shows it to its workers on purpose.
var places = []string{
	"/dev",
	"/etc",
	"/proc",
	"/run",
	"/sys",
	"/var/lib/containerd",
	"/var/lib/containers",
	"/var/lib/docker",
	"/var/lib/kubelet",
	"/var/run",

	"~/.aws",
	"~/.cargo/credentials*",
	"~/.config/containers",
	"~/.config/gcloud",
	"~/.config/gh",
	"~/.config/git",
	"~/.docker",
	"~/.git-credentials",
	"~/.gitconfig",
	"~/.gnupg",
	"~/.kube",
	"~/.local/share/containers",
	"~/.netrc",
	"~/.npmrc",
	"~/.ssh",

	"$AWS_CONFIG_FILE",
	"$AWS_SHARED_CREDENTIALS_FILE",
	"$CARGO_HOME/credentials*",
	"$CLOUDSDK_CONFIG",
	"$CONTAINER_HOST",
	"$DOCKER_CONFIG",
	"$DOCKER_HOST",
	"$GH_CONFIG_DIR",
	"$GIT_CONFIG_GLOBAL",
	"$GNUPGHOME",
	"$GOOGLE_APPLICATION_CREDENTIALS",
	"$KUBECONFIG",
	"$NETRC",
	"$NPM_CONFIG_USERCONFIG",
	"$REGISTRY_AUTH_FILE",
	"$SSH_AUTH_SOCK",
	"$XDG_CONFIG_HOME/containers",
	"$XDG_CONFIG_HOME/gcloud",
	"$XDG_CONFIG_HOME/gh",
	"$XDG_CONFIG_HOME/git",
	"$XDG_DATA_HOME/containers",
	"$XDG_RUNTIME_DIR",
	"$npm_config_userconfig",
}

// own are workshop's directories: settings there name programs that run on the host, and
// state there is trusted. They are refused anywhere.
var own = []string{
	"~/.cache/workshop",
	"~/.config/workshop",
	"~/.local/share/workshop",
	"~/.local/state/workshop",

	"$XDG_CACHE_HOME/workshop",
	"$XDG_CONFIG_HOME/workshop",
	"$XDG_DATA_HOME/workshop",
	"$XDG_RUNTIME_DIR/workshop",
	"$XDG_STATE_HOME/workshop",
}

// engineSockets are the names of engines' sockets, in any directory.
var engineSockets = []string{"containerd.sock", "docker.sock", "podman.sock"}

// Pattern returns a regular expression, not anchored at the end, for sources that are
// refused for every caller by their text. It is for editors.
func Pattern() string {
	parts := []string{`/`, `/.*/(` + strings.ReplaceAll(strings.Join(engineSockets, "|"), ".", `\.`) + `)`}
	above := append([]string{"/root"}, parentsOfHomes...)
	for _, place := range slices.Concat(places, own) {
		if strings.HasPrefix(place, "$") {
			continue
		}
		name, any := strings.CutSuffix(place, "*")
		part := regexp.QuoteMeta(name)
		if any {
			part += `[^/]*`
		}
		parts = append(parts, part+`(/.*)?`)
		for dir := path.Dir(name); dir != "/" && dir != "."; dir = path.Dir(dir) {
			above = append(above, dir)
		}
	}
	slices.Sort(above)
	for _, dir := range slices.Compact(above) {
		parts = append(parts, regexp.QuoteMeta(dir)+`/?`)
	}
	return `^(` + strings.Join(parts, "|") + `)`
}
