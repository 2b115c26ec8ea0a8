package archtest

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// concepts have one home each: what shows that code has one of its own is looked for
// elsewhere. Whoever needs another one on purpose is listed with the reason.
var concepts = []struct {
	name, home string // home: a folder, or several
	sign       string // regular expression, of a line
	except     map[string]string
}{
	{"a text cut to a length", "internal/lib/clip", `\[:.*\] ?\+ ?"(…|\.\.\.)"`, map[string]string{
		"internal/image/reference/imageref.go": "it imports nothing of ours",
		"internal/lib/safetar/tarball.go":      "beginning and end of a path; lib imports nothing of ours",
	}},
	{"a path is or lies below another", "internal/lib/subpath", `(HasPrefix|CutPrefix)\([^)]*\+ ?("/"|string\(filepath\.Separator\))\)`, map[string]string{
		"workshop/locate.go":             "a name in a file system of the loader",
		"internal/callrule/path.go":      "two patterns may meet",
		"internal/toolbox/files/glob.go": "a pattern may be above the directory",
		"internal/lib/cgroup/parse.go":   "lib imports nothing of ours",
		"internal/facts/create.go":       "a path that filepath.Rel made",
	}},
	{"a $ that Compose is to take as it is", "diag", `"\$\$"`, map[string]string{
		"workshop/variables.go": "it reads them",
		"firewall/expand.go":    "it reads them",
	}},
	{"who owns a file", "internal/lib/fileowner", `Sys\(\)\.\(\*syscall\.Stat_t\)`, map[string]string{
		"internal/facts/id_unix.go": "the file's number, not its owner",
		"internal/facts/linux.go":   "the file's device, not its owner",

		"internal/initimage/initbuild/changed_linux.go": "the time of the file's change, not its owner",
		"internal/model/store/stamp.go":                 "whether it is the file that was read, not its owner",
		"internal/probe/files.go":                       "it prints what it sees",
		"internal/workerinit/errno_linux.go":            "PID 1 of a worker links no more than it needs",
		"internal/vm/root/source.go":                    "all of it is go-erofs's",
	}},
	{"a file that is replaced in one step", "internal/lib/atomicfile", `os\.CreateTemp\(`, map[string]string{
		"internal/app/rewrite.go":                "the new workshop.yaml is loaded before it takes the old one's place",
		"internal/engine/docker/buildcontent.go": "a spool that is never renamed",
		"internal/image/pull_linux.go":           "a layer that is unpacked and removed",
	}},
	{"JSON without escapes for web pages", "internal/lib/plainjson", `SetEscapeHTML\(false\)`, map[string]string{
		"internal/probe/main.go":           "a stream of values",
		"internal/toolbox/wire/message.go": "a stream of values into a frame",
		"internal/diagtext/json.go":        "a stream, indented",
		"internal/session/audit/log.go":    "a stream of values; it imports nothing of ours but lib",
		"internal/session/audit/redact.go": "it measures while it writes",
		"internal/trust/list.go":           "a stream, indented",
		"internal/cli/command/encode.go":   "a stream, indented",
	}},
	{"a duration in words", "internal/lib/durationtext", `"(m0s|h0m)"`, nil},
	{"words for a shell", "internal/lib/shellquote", "`'\\\\''`", map[string]string{
		"internal/session/audit/redact.go": "secrets are looked for in every form that they may have",
	}},
	{"names of engines", "internal/promise workshop", `= "(docker|namespace|process)"$`, map[string]string{
		"internal/engine/docker/context.go": "the endpoint's name in a docker context",
	}},
	{"roles of containers", "compose internal/engine/namespace/container/spec", `Role (==|!=) "`, nil},
	{"the URL of the guard's proxy upstream", "firewall", `url\.Parse\(`, map[string]string{
		"tool/limit.go":                     "a domain that fetch_url is limited to",
		"internal/callrule/host.go":         "what fetch_url is asked for",
		"internal/toolbox/fetch/fetch.go":   "what fetch_url is asked for",
		"internal/session/approval/text.go": "what fetch_url is asked for, shown",
		"internal/probe/http.go":            "what a test asks for",
		"internal/grant/network.go":         "the proxy without its password",
		"internal/doctor/proxy.go":          "the proxies of the caller's environment",
		"internal/git/remote.go":            "the address of a repository",
		"internal/source/source.go":         "the address of a repository",
		"internal/guard/proxy/lfs.go":       "the address of an object of LFS",
	}},
	{"tar archives", "internal/lib/safetar internal/engine/copytree", `"archive/tar"`, map[string]string{
		"internal/app/bundle.go":                  "files of a bug report, which nobody unpacks by it",
		"internal/app/copy.go":                    "it reads the first entry of an engine's stream",
		"internal/dev/testnet/packages.go":        "packages for tests",
		"internal/dev/testutil/files.go":          "trees for tests",
		"internal/engine/docker/build.go":         "the context of a build",
		"internal/engine/docker/buildcontent.go":  "what a build's context is, whatever the modes of files",
		"internal/engine/docker/caches.go":        "the owner of a volume is set by a stream of ours",
		"internal/engine/docker/fill.go":          "a volume is filled by a stream of ours",
		"internal/engine/docker/policydigest.go":  "one file is read out of a container",
		"internal/engine/docker/tools.go":         "the tool volume is filled by a stream of ours",
		"internal/engine/namespace/fill_linux.go": "a volume is filled by a stream of ours",
		"internal/engine/process/steps_linux.go":  "a copy is filled by a stream of ours",
		"internal/image/archive_linux.go":         "archives of images",
		"internal/image/extract_linux.go":         "layers of images, with whiteouts",
		"internal/initimage/image.go":             "the image of workshop-init",
		"internal/toolbox/files/pack_linux.go":    "inside a worker, by descriptors",
		"internal/toolbox/files/unpack_linux.go":  "inside a worker, by descriptors",
	}},
	{"a slice sorted by a function", "internal/lib/sortfunc", `slices\.Sort(Stable)?Func\(`, map[string]string{
		"diag/diag.go": "the lowest package",
		"internal/dev/seccompgen/numbers/main.go": "no size matters in a generator",
		"internal/lib/safetar/tarball.go":         "lib imports nothing of ours",
		"internal/session/audit/redact.go":        "it writes down what it is given",
	}},
	{"a grant in words", "internal/grant", `%s at %s %s`, nil},
	{"JSON Schema", "internal/session workshop/worker internal/dev/schemagen", `"github\.com/(google/jsonschema-go|santhosh-tekuri|invopop)`, nil},
}

// TestConcepts: one concept has one home (design: the house).
func TestConcepts(t *testing.T) {
	files := goFiles(t)
	for _, c := range concepts {
		sign, used := regexp.MustCompile("(?m)"+c.sign), map[string]bool{}
		home := func(name string) bool {
			return slices.ContainsFunc(strings.Fields(c.home), func(home string) bool { return strings.HasPrefix(name, home+"/") })
		}
		for name, data := range files {
			if strings.HasSuffix(name, "_test.go") || notProduct.MatchString(name) || home(name) {
				continue
			}
			at := sign.FindIndex(data)
			if at == nil {
				continue
			}
			used[name] = true
			if c.except[name] == "" {
				t.Errorf("%s:%d: %s has its home in %s; if this one is another on purpose, list it with the reason", name, 1+bytes.Count(data[:at[0]], []byte("\n")), c.name, c.home)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.except)) {
			if !used[name] {
				t.Errorf("%s: %s is listed and has nothing of it", c.name, name)
			}
		}
		for home := range strings.FieldsSeq(c.home) {
			if _, err := os.Stat(filepath.Join(root, home)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// notProduct are files that may do as they like.
var notProduct = regexp.MustCompile(`^(\.|bench/|e2e/|examples/|internal/dev/archtest/)`)
