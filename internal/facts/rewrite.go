package facts

// Rewrite runs write, which replaces the file name, and updates the snapshots in the
// directories: a change by this program isn't one by a worker. A file that had changed
// before stays a change.
func Rewrite(dirs []string, name string, write func() error) error {
	for _, dir := range dirs {
		s, err := LoadSnapshot(dir)
		if err != nil || s == nil {
			continue
		}
		now := Snapshot{}
		if err := now.file(name); err != nil || s[name] == "" || s[name] != now[name] {
			break
		}
		if err := write(); err != nil {
			return err
		}
		if err := s.file(name); err != nil {
			return err
		}
		return s.Save(dir)
	}
	return write()
}
