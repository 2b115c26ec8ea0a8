package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// pluginName is the program's name as a plugin of the docker command, which finds it in
// its cli-plugins directories: `docker workshop up` (docker/cli, cli-plugins/metadata).
const pluginName = "docker-workshop"

// metadataCommand is how the docker command asks a plugin what it is.
const metadataCommand = "docker-cli-plugin-metadata"

// isPlugin reports whether the docker command started this program.
func isPlugin(args []string) bool {
	return len(args) > 0 && strings.TrimSuffix(filepath.Base(args[0]), ".exe") == pluginName
}

// writeMetadata answers metadataCommand.
func writeMetadata(w io.Writer, version string) error {
	b, err := json.Marshal(struct {
		SchemaVersion    string
		Vendor           string
		Version          string
		ShortDescription string
		URL              string
	}{"0.1.0", "llmdo", version, "Sandboxes for the tools of LLM agents", "https://github.com/llmdo/workshop"})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}

// pluginArgs takes docker's own flags and the name of the plugin off a command line, as
// the docker command passes it on whole. It returns the variables by which this program
// finds the same engine.
func pluginArgs(args []string) (rest []string, variables map[string]string, err error) {
	own := pflag.NewFlagSet("docker", pflag.ContinueOnError)
	own.SetInterspersed(false)
	own.SetOutput(io.Discard)
	variables = map[string]string{}
	set := func(name string) func(string) error {
		return func(value string) error { variables[name] = value; return nil }
	}
	own.Func("config", "", set("DOCKER_CONFIG"))
	own.FuncP("context", "c", "", set("DOCKER_CONTEXT"))
	own.FuncP("host", "H", "", set("DOCKER_HOST"))
	own.BoolP("debug", "D", false, "")
	own.StringP("log-level", "l", "", "")
	verify := own.Bool("tlsverify", false, "")
	tls := []string{"tls", "tlscacert", "tlscert", "tlskey"}
	own.Bool(tls[0], false, "")
	for _, name := range tls[1:] {
		own.String(name, "", "")
	}
	if err := own.Parse(args); err != nil {
		return nil, nil, err
	}
	for _, name := range tls {
		if own.Changed(name) {
			return nil, nil, fmt.Errorf("docker's --%s is not passed on: use a docker context, or DOCKER_CERT_PATH and DOCKER_TLS_VERIFY", name)
		}
	}
	if *verify {
		variables["DOCKER_TLS_VERIFY"] = "1"
	}
	rest = own.Args()
	if len(rest) == 0 || rest[0] != "workshop" {
		return nil, nil, errors.New("this is the plugin of the docker command: run `docker workshop`")
	}
	return rest[1:], variables, nil
}

// asPlugin is the command line of a plugin without what is docker's; done where the
// program has no more to do.
func asPlugin(args []string, version string) (rest []string, code int, done bool) {
	if len(args) > 1 && args[1] == metadataCommand {
		if err := writeMetadata(os.Stdout, version); err != nil {
			return nil, 1, true
		}
		return nil, 0, true
	}
	rest, variables, err := pluginArgs(args[1:])
	if err == nil {
		for name, value := range variables {
			err = errors.Join(err, os.Setenv(name, value))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "workshop: error:", err)
		return nil, 2, true
	}
	return rest, 0, false
}
