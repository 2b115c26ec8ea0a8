//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// workTask is a script in the project. It finds everything it needs there, so that none
// asks for a network, and takes a second or more: starting it isn't what is measured.
type workTask struct {
	what, script, text string
	rounds             int // at least
}

const (
	smallFiles = 20000
	tsModules  = 150
	goPackages = 60
)

// workPackages are some 150 packages from npm.
const workPackages = `{"name": "work", "version": "1.0.0", "private": true, "dependencies": {"eslint": "9.39.1", "express": "5.1.0", "typescript": "5.9.3"}}`

// npmOffline: the registry is asked for nothing, the cache has it all.
const npmOffline = " --offline --no-audit --no-fund --no-update-notifier --cache \"$PWD/npm-cache\"\n"

// goEnv: the build cache is in the project, and has the standard library.
const goEnv = "export GOCACHE=\"$PWD/../go-cache\" GOENV=off GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOTELEMETRY=off CGO_ENABLED=0\n"

var workTasks = []workTask{
	{"npm install of 150 packages from its cache", "npm.sh", "rm -rf node_modules\nnpm install" + npmOffline, 15}, // from 1.3 to 1.8 s on an idle machine
	{fmt.Sprintf("tsc of %d modules", tsModules), "tsc.sh", "rm -rf out\nnode node_modules/typescript/bin/tsc -p ts\n", 5},
	// Each package is compiled, as all import the one that changed.
	{fmt.Sprintf("go build of %d packages that import net/http", goPackages), "build.sh", "cd go\n" + goEnv +
		"printf 'package base\\n\\nconst Round = \"%s\"\\n' \"$(date +%s%N)\" > base/base.go\ngo build -o ../app .\n", 5},
	{fmt.Sprintf("%d small files: tar, grep, git status, rm", smallFiles), "files.sh", "rm -rf files\nmkdir files\ntar -xf files.tar -C files\n" +
		"grep -rl 'file 19999$' files > /dev/null\ngit init -q files\ngit -C files status --short --untracked-files=all > /dev/null\nrm -rf files\n", 5},
}

// workTree writes the project of the part work, and has its packages downloaded once.
func (b *bench) workTree() (string, error) {
	dir := filepath.Join(b.dir, "work")
	files := map[string]string{
		"package.json": workPackages,
		"versions.sh":  "set -e\ngo version\nnode --version\nnpm --version\ngit --version\n",
	}
	for _, t := range workTasks {
		files[t.script] = "set -e\n" + t.text
	}
	tsProject(files)
	goModule(files)
	if err := writeFiles(dir, files); err != nil {
		return "", err
	}
	if err := b.npmCache(dir); err != nil {
		return "", err
	}
	// The standard library is compiled once for all.
	if _, err := b.timed(dir, nil, "sh", "build.sh"); err != nil {
		return "", err
	}
	return dir, b.smallFiles(dir)
}

// npmCache fills npm's cache, in the directory of the built programs, and copies it.
func (b *bench) npmCache(dir string) error {
	cache := filepath.Join(b.bin, "npm-work")
	if old, _ := os.ReadFile(filepath.Join(cache, "package.json")); string(old) != workPackages {
		if err := os.RemoveAll(cache); err != nil {
			return err
		}
		fill := filepath.Join(b.dir, "npm-fill")
		if err := writeFiles(fill, map[string]string{"package.json": workPackages}); err != nil {
			return err
		}
		if _, err := b.timed(fill, nil, "npm", "install", "--silent", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved=false", "--cache", filepath.Join(fill, "npm-cache")); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(fill, "node_modules")); err != nil {
			return err
		}
		if _, err := b.timed(fill, nil, "cp", "-r", fill, cache); err != nil {
			return err
		}
	}
	_, err := b.timed(dir, nil, "cp", "-r", cache+"/.", dir)
	return err
}

// smallFiles packs 20,000 files of 0 to 4 KB, a hundred in a directory.
func (b *bench) smallFiles(dir string) error {
	tree := filepath.Join(b.dir, "small")
	files := map[string]string{}
	for i := range smallFiles {
		line := fmt.Sprintf("line of file %d\n", i)
		files[fmt.Sprintf("%03d/%05d.txt", i/100, i)] = strings.Repeat(line, i*7919%200)
	}
	if err := writeFiles(tree, files); err != nil {
		return err
	}
	if _, err := b.timed(tree, nil, "tar", "-cf", filepath.Join(dir, "files.tar"), "."); err != nil {
		return err
	}
	return os.RemoveAll(tree)
}

// tsProject writes modules that import some of the earlier ones.
func tsProject(files map[string]string) {
	files["ts/tsconfig.json"] = `{"compilerOptions": {"strict": true, "target": "es2022", "module": "node16", "outDir": "../out", "declaration": true, "types": []}, "include": ["*.ts"]}`
	for i := range tsModules {
		var y strings.Builder
		for j := max(0, i-5); j < i; j++ {
			fmt.Fprintf(&y, "import { Item%d, change%d } from \"./m%d.js\";\n", j, j, j)
		}
		fmt.Fprintf(&y, "export interface Item%d<T = string> { id: number; value: T; tags: ReadonlyArray<keyof T & string>; next?: Item%d<T> }\n", i, i)
		fmt.Fprintf(&y, "export function change%d<T extends object, K extends keyof T>(item: Item%d<T>, key: K, value: T[K]): Item%d<Omit<T, K> & Record<K, T[K]>> {\n\treturn { id: item.id + %d, value: { ...item.value, [key]: value } as Omit<T, K> & Record<K, T[K]>, tags: [] };\n}\n", i, i, i, i)
		for j := max(0, i-5); j < i; j++ {
			fmt.Fprintf(&y, "const made%d: Item%d<{ a: number; b: string[] }> = { id: %d, value: { a: %d, b: [\"x\"] }, tags: [\"a\"] };\nexport const size%d = change%d(made%d, \"a\", 2).value.b.map((x) => x.length).reduce((a, b) => a + b, 0);\n", j, j, j, i, j, j, j)
		}
		files[fmt.Sprintf("ts/m%d.ts", i)] = y.String()
	}
}

// goModule writes packages that all import base, and a program that serves them.
func goModule(files map[string]string) {
	files["go/go.mod"] = "module example.org/work\n\ngo 1.21\n"
	files["go/base/base.go"] = "package base\n\nconst Round = \"\"\n"
	var imports, calls strings.Builder
	for i := range goPackages {
		fmt.Fprintf(&imports, "\t\"example.org/work/p%d\"\n", i)
		fmt.Fprintf(&calls, "\thttp.HandleFunc(\"/p%d\", p%d.Serve)\n", i, i)
		var y strings.Builder
		fmt.Fprintf(&y, "package p%d\n\nimport (\n\t\"encoding/json\"\n\t\"fmt\"\n\t\"net/http\"\n\t\"strings\"\n\n\t\"example.org/work/base\"\n)\n", i)
		for j := range 20 {
			fmt.Fprintf(&y, "\ntype T%d struct {\n\tName string\n\tCount map[string]int\n}\n\nfunc (t *T%d) Add(words ...string) string {\n\tfor _, w := range words {\n\t\tif t.Count == nil {\n\t\t\tt.Count = map[string]int{}\n\t\t}\n\t\tt.Count[strings.ToLower(w)] += len(w) + %d\n\t}\n\treturn fmt.Sprintf(\"%%s %%v %%s\", t.Name, t.Count, base.Round)\n}\n", j, j, j)
		}
		y.WriteString("\nfunc Serve(w http.ResponseWriter, r *http.Request) {\n")
		for j := range 20 {
			fmt.Fprintf(&y, "\tt%d := &T%d{Name: r.URL.Path}\n\tt%d.Add(r.Header.Values(\"X-Word\")...)\n\t_ = json.NewEncoder(w).Encode(t%d)\n", j, j, j, j)
		}
		y.WriteString("}\n")
		files[fmt.Sprintf("go/p%d/p.go", i)] = y.String()
	}
	files["go/main.go"] = "package main\n\nimport (\n\t\"net/http\"\n\n" + imports.String() + ")\n\nfunc main() {\n" + calls.String() + "\tpanic(http.ListenAndServe(\"127.0.0.1:0\", nil))\n}\n"
}

func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyWork copies the project for one place, whose user may write it.
func (b *bench) copyWork(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if out, err := exec.CommandContext(b.ctx, "cp", "-r", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the project: %w\n%s", err, out)
	}
	return filepath.WalkDir(to, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, benchUser, benchUser)
	})
}
