package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/workshop"
)

// bundleSecrets collects what is redacted, and finds the workshop here.
func (env *Env) bundleSecrets(ctx context.Context) (doctor.Secrets, *bundledWorkshop, error) {
	s := doctor.Secrets{Home: env.Home, User: firstOf(env.Getenv("USER"), env.Getenv("LOGNAME"), filepath.Base(env.Home))}
	s.Machine, _ = os.Hostname()
	if env.Environ != nil {
		s.Values = environmentValues(env.Environ())
	}
	for _, name := range urlVariables {
		value := env.Getenv(name)
		s.Values = append(s.Values, credentialsOf(value)...)
		if host := hostOf(value); strings.Contains(host, ".") {
			s.Hosts = append(s.Hosts, host)
		}
	}
	if dir := env.ConfigDir(); dir != "" {
		values, err := valuesIn(filepath.Join(dir, "config.yaml"), ":", maxSettings)
		if err != nil {
			return s, nil, err
		}
		s.Values = append(s.Values, values...)
	}
	ref, err := env.Find(ctx)
	if err != nil {
		return s, nil, nil
	}
	here := &bundledWorkshop{ref: ref}
	if ref.File != "" {
		files := []string{filepath.Join(ref.Dir, ".env")}
		for _, f := range env.Settings.EnvFiles {
			files = append(files, env.Abs(f))
		}
		for _, f := range files {
			values, err := valuesIn(f, "=", workshop.MaxFileSize)
			if err != nil {
				return s, nil, err
			}
			s.Values = append(s.Values, values...)
		}
		if src, err := env.Read(ctx, ref.File); err == nil {
			here.src = src
			if w := src.Workshop; w != nil {
				values, hosts := workshopSecrets(w)
				s.Values, s.Hosts = append(s.Values, values...), append(s.Hosts, hosts...)
			}
		}
	}
	return s, here, nil
}

// valuesIn are the values of a file of variables or settings; none if there is no file.
// Without them nothing can be taken out.
func valuesIn(file, separator string, limit int64) ([]string, error) {
	data, err := boundedfile.Read(file, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Fail(CodeRefused, "bundle: the values of a file can't be taken out: %w", err).Hint("write it elsewhere: `cd / && workshop doctor --bundle FILE`")
	}
	return lineValues(string(data), separator), nil
}

// lineValues are what follows the first separator of each line, as it is, without quotes,
// and each word of it: more than what is a value is taken for one.
func lineValues(text, separator string) (out []string) {
	for line := range strings.Lines(text) {
		_, value, ok := strings.Cut(line, separator)
		if value = strings.TrimSpace(value); ok && value != "" {
			out = append(append(out, value, strings.Trim(value, `"'`)), strings.Fields(value)...)
			out = append(out, strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t,{}[]\"'", r) })...)
		}
	}
	return out
}

// urlVariables have URLs, of which the credentials are secret.
var urlVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "DOCKER_HOST"}

// plainVariables have values that say nothing, or are replaced by themselves.
var plainVariables = []string{
	"PATH", "HOME", "PWD", "OLDPWD", "SHELL", "TERM", "COLORTERM", "LANG", "LANGUAGE", "USER", "LOGNAME", "EDITOR", "PAGER", "TZ", "TMPDIR",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS", "WORKSHOP_ENGINE", "WORKSHOP_FORMAT", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// environmentValues are the values of the caller's variables, but for paths and words of
// the system. A list of variables that hold secrets would never be whole.
func environmentValues(environ []string) (out []string) {
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if slices.Contains(plainVariables, name) || slices.Contains(urlVariables, name) || strings.HasPrefix(name, "LC_") {
			continue
		}
		out = append(out, value)
	}
	return out
}

// workshopSecrets are literals of a workshop that may be secret, and hosts that it names.
func workshopSecrets(w *workshop.Workshop) (values, hosts []string) {
	var read func(key string, v any)
	read = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, below := range v {
				if key == "env" || key == "args" {
					values = append(values, fmt.Sprint(below))
				}
				read(k, below)
			}
		case []any:
			for _, below := range v {
				read(key, below)
			}
		case string:
			switch key {
			case "allow", "deny", "host", "dns":
				hosts = append(hosts, bareHost(v))
			case "proxy":
				values, hosts = append(values, credentialsOf(v)...), append(hosts, hostOf(v))
			case "match", "command":
				values = append(values, v)
			case "image":
				hosts = append(hosts, registryOf(v))
			}
		}
	}
	read("", plainConfig(w))
	return values, slices.DeleteFunc(hosts, func(h string) bool { return h == "" })
}

// plainConfig is the resolved workshop as JSON has it.
func plainConfig(w *workshop.Workshop) (doc map[string]any) {
	b, err := json.Marshal(resolve(w))
	if err == nil {
		_ = json.Unmarshal(b, &doc)
	}
	return doc
}

// bareHost is a line of a network without port and wildcard.
func bareHost(line string) string {
	line = strings.TrimLeft(line, "*.")
	host, _, _ := strings.Cut(line, ":")
	if !strings.Contains(host, ".") {
		return "" // a word of any text
	}
	return host
}

// credentialsOf are user and password of a URL, together and apart.
func credentialsOf(value string) []string {
	_, rest, found := strings.Cut(value, "://")
	if !found {
		rest = value
	}
	rest, _, _ = strings.Cut(rest, "/")
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return nil
	}
	user, password, _ := strings.Cut(rest[:at], ":")
	out := []string{rest[:at], user, password}
	if plain, err := url.PathUnescape(password); err == nil {
		out = append(out, plain)
	}
	return out
}

// hostOf is the host of a URL.
func hostOf(value string) string {
	_, rest, found := strings.Cut(value, "://")
	if !found {
		rest = value
	}
	rest, _, _ = strings.Cut(rest, "/")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	host, _, _ := strings.Cut(rest, ":")
	return host
}

// publicRegistries are those that anybody uses.
var publicRegistries = []string{"docker.io", "ghcr.io", "quay.io", "gcr.io", "registry.k8s.io", "mcr.microsoft.com", "public.ecr.aws"}

// registryOf is the registry of an image's reference, if it isn't a public one.
func registryOf(image string) string {
	registry, _, found := strings.Cut(image, "/")
	host, _, _ := strings.Cut(registry, ":")
	if !found || !strings.Contains(host, ".") || slices.Contains(publicRegistries, host) {
		return ""
	}
	return host
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" && s != "/" && s != "." {
			return s
		}
	}
	return ""
}

// definedValues are all values of the workshop's file, and of the files that the last
// `up` was loaded from.
func (env *Env) definedValues(ref ProjectRef) (out []string, err error) {
	if ref.File != "" {
		if out, err = valuesIn(ref.File, ":", workshop.MaxFileSize); err != nil {
			return nil, err
		}
	}
	r, err := env.Record(ref.Name)
	if err != nil {
		return nil, err
	}
	if r != nil {
		for _, text := range r.Definition {
			out = append(append(out, lineValues(text, ":")...), lineValues(text, "=")...)
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > maxBundleValues {
		return nil, errors.New("the workshop's files have too many values to take out")
	}
	return out, nil
}
