package facts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/fileio"
)

// Problem returns the problem of cluster.yaml; empty if it is valid.
func (s *Source) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// Cluster returns the last valid cluster.yaml; nil before the first.
func (s *Source) Cluster() *v1alpha1.ClusterConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

// loadCluster returns cluster.yaml, or the last valid one if the file cannot be read or
// is invalid. It fails only before the first valid one.
func (s *Source) loadCluster() (*v1alpha1.ClusterConfig, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cluster, data, err := readCluster(s.ClusterConfig)
	first, before := s.cluster == nil, s.cluster
	if first && s.Kept != "" {
		before, _, _ = readCluster(s.Kept)
	}
	// With the file of another cluster, the nodes of this one would release their VIPs and claim those.
	if err == nil && before != nil && before.Spec.Domain != cluster.Spec.Domain {
		err = fmt.Errorf("cluster.yaml of %s on a node of %s: install this cluster's; if the node changed clusters, remove /etc/*/.vipgen-cluster.yaml and reboot it",
			cluster.Spec.Domain, before.Spec.Domain)
	}
	switch {
	case err == nil:
		// The same value for the same content, so that changes show.
		if !bytes.Equal(data, s.data) {
			s.set(cluster)
			s.data, s.kept = data, false
			s.logUnknown()
		}
		s.storeCopy()
	case first && before != nil:
		s.set(before)
	}
	s.reportProblem(err, first)
	if s.cluster == nil {
		return nil, err
	}
	return s.cluster, nil
}

func readCluster(path string) (*v1alpha1.ClusterConfig, []byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := v1alpha1.LoadClusterConfig(path, data)
	return cluster, data, limitProblems(err)
}

// maxProblems bounds the problems that are logged and shown: a file with 10,000 groups
// may have as many.
const maxProblems = 20

func limitProblems(err error) error {
	var list problem.List
	if !errors.As(err, &list) || len(list) <= maxProblems {
		return err
	}
	return fmt.Errorf("%w\nand %d more problems", list[:maxProblems], len(list)-maxProblems)
}

// set sets the last valid cluster, also for the list of nodes.
func (s *Source) set(cluster *v1alpha1.ClusterConfig) {
	s.cluster = cluster
	if s.Nodes != nil {
		s.Nodes.SetCluster(cluster)
	}
}

// storeCopy writes the copy, now or at a later call: a full or read-only disk must not
// prevent the use of new facts.
func (s *Source) storeCopy() {
	if s.kept || s.Kept == "" {
		return
	}
	_, err := fileio.Write(s.Kept, s.data, 0o644)
	s.kept = err == nil
	s.storing.Warn(s.Log, err, "cannot store a copy of cluster.yaml", "copy of cluster.yaml stored again", "file", s.Kept)
}

// reportProblem logs and stores the result of reading the file; first reports that there
// was no valid one before.
func (s *Source) reportProblem(err error, first bool) {
	what, over := "cluster.yaml invalid", "cluster.yaml valid again"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "cluster.yaml missing"
	case errors.As(err, new(*fs.PathError)):
		what = "cannot read cluster.yaml"
	case first:
		over = "cluster.yaml valid"
	}
	if s.cluster == nil {
		what += ": there is no earlier one to use"
	} else {
		what += ": the last valid one stays in use"
	}
	s.reading.Error(s.Log, err, what, over, "file", s.ClusterConfig)
	s.problem = ""
	if err != nil {
		s.problem = err.Error()
	}
}

// logUnknown logs unknown fields of the file.
func (s *Source) logUnknown() {
	if unknown := v1alpha1.UnknownFields(s.data); len(unknown) > 0 {
		s.Log.Warn("unknown fields in cluster.yaml ignored: this agent is older than the vipgen that rendered it",
			"file", s.ClusterConfig, "fields", fmt.Sprintf("%.300q", unknown))
	}
}
