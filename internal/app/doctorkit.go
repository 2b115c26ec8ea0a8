package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/vm/report"
)

// kit is the one of the settings.
func (env *Env) kit() (k doctor.Kit) {
	if k.Kit, k.Err = readKit(filepath.Join(env.kitsDir(), env.Settings.VMKit)); k.Err != nil {
		return k
	}
	if info, err := os.Stat("/boot/vmlinuz-" + k.Kernel.Release); err == nil {
		k.Installed = info.ModTime()
	}
	return k
}

// readKit reads the description of a kit, whose directory has its hash as a name. Whether its
// files are those that it describes, workshop-vm finds out.
func readKit(dir string) (k report.Kit, err error) {
	text, err := boundedfile.Read(filepath.Join(dir, report.KitFile), maxVMAnswer)
	if errors.Is(err, fs.ErrNotExist) {
		return k, errors.New("it isn't in " + filepath.Dir(dir))
	} else if err != nil {
		return k, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != filepath.Base(dir) {
		return k, errors.New("its description is not the one that your settings name")
	}
	if err := json.Unmarshal(text, &k); err != nil {
		return k, err
	}
	if k.Version != report.KitVersion {
		return k, errors.New("it is of another version of workshop")
	}
	return k, nil
}
