package app

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/doctor"
)

// BundleFile is one file of a bundle.
type BundleFile struct {
	Name, About string
	Data        []byte
}

// Bundle is what is written for a bug report. Its texts are redacted.
type Bundle struct{ Files []BundleFile }

// bundleTime bounds what is collected besides the findings.
const bundleTime = 20 * time.Second

// maxBundleFile bounds each file, in bytes: the end of a longer one is kept.
const maxBundleFile = 256 << 10

// maxBundleValues bounds what is looked for in each file, in several forms.
const maxBundleValues = 1000

// Bundle collects what helps with a bug: what Doctor found, this machine, and the
// workshop here, if there is one. Nothing leaves it unredacted ([doctor.Redactor]).
func (env *Env) Bundle(ctx context.Context, r DoctorReport) (*Bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, bundleTime)
	defer cancel()
	quiet := *env
	quiet.Events = nil
	secrets, here, err := quiet.bundleSecrets(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(secrets.Values)
	if secrets.Values = slices.Compact(secrets.Values); len(secrets.Values) > maxBundleValues {
		return nil, Fail(CodeRefused, "bundle: there are %d values of variables to take out, want %d at most (.env, the environment)", len(secrets.Values), maxBundleValues).
			Hint("write it elsewhere: `cd / && workshop doctor --bundle FILE`")
	}
	red := doctor.NewRedactor(secrets)
	if here != nil {
		here.values = secrets.Values
	}
	doctorJSON, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	b := &Bundle{}
	add := func(name, about string, data []byte) {
		if len(data) > maxBundleFile {
			data = wholeLines(data[len(data)-maxBundleFile:])
		}
		if len(data) > 0 {
			b.Files = append(b.Files, BundleFile{name, about, []byte(red.Text(string(data)))})
		}
	}
	// All is read first: the guard's events name hosts that other files have, too.
	texts := make([][]byte, len(bundleParts))
	for i, part := range bundleParts {
		if here == nil {
			break
		}
		if texts[i], err = part.read(ctx, &quiet, here, red); err != nil {
			texts[i] = append(texts[i], "not readable: "+firstLine(err)+"\n"...)
		}
	}
	add("doctor.json", "what doctor found", append(doctorJSON, '\n'))
	add("machine.txt", "kernel, distribution, control groups", machineFacts())
	for i, part := range bundleParts {
		add(part.name, part.about, texts[i])
	}
	list := "For a bug report about workshop. Read it before you send it.\n\n" +
		"Replaced: values of variables and secrets, tokens, credentials and queries of URLs ([secret]); names of\n" +
		"hosts (host-1), of the user and the machine (NAME), the home directory (~).\n\n" + b.List()
	b.Files = append([]BundleFile{{"README.txt", "this list", []byte(list)}}, b.Files...)
	return b, nil
}

// wholeLines is a text without its first line, of which only the end is left: what is to
// be redacted isn't known by its end.
func wholeLines(text []byte) []byte {
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	return rest
}

// List is a line for each file.
func (b *Bundle) List() string {
	var out strings.Builder
	for _, f := range b.Files {
		fmt.Fprintf(&out, "%-16s %s\n", f.Name, f.About)
	}
	return out.String()
}

// Write writes the bundle as a new file that nobody else can read: a zip archive if its
// name ends so, else tar and gzip.
func (b *Bundle) Write(path string) error {
	var data bytes.Buffer
	pack := b.tar
	if strings.HasSuffix(strings.ToLower(path), ".zip") {
		pack = b.zip
	}
	if err := pack(&data); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return Fail(CodeUsage, "%s exists", Printable(path)).Hint("name another file: nothing is overwritten")
	}
	if err != nil {
		return err
	}
	if _, err = f.Write(data.Bytes()); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// bundleDir is the directory in the archive.
const bundleDir = "workshop-bundle/"

func (b *Bundle) tar(w io.Writer) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range b.Files {
		if err := t.WriteHeader(&tar.Header{Name: bundleDir + f.Name, Mode: 0o600, Size: int64(len(f.Data))}); err != nil {
			return err
		}
		if _, err := t.Write(f.Data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func (b *Bundle) zip(w io.Writer) error {
	z := zip.NewWriter(w)
	for _, f := range b.Files {
		part, err := z.Create(bundleDir + f.Name)
		if err != nil {
			return err
		}
		if _, err := part.Write(f.Data); err != nil {
			return err
		}
	}
	return z.Close()
}
