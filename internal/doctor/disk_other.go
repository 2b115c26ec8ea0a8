//go:build !linux

package doctor

// Look knows nothing of file systems outside Linux.
func (f FileSystem) Look() (FileSystem, error) {
	f.Free, f.Inodes = -1, -1
	return f, nil
}
