package facts

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// Problem says what is wrong with cluster.yaml; nothing if it is right.
func (s *Source) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// Cluster is the cluster.yaml that counts, the last good one; nil before there was
// any.
func (s *Source) Cluster() *v1alpha1.ClusterConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

// loadCluster returns cluster.yaml, or the last good one when the file cannot be
// read or is not right as a whole. The error is not nil only if there never was
// a good one.
func (s *Source) loadCluster() (*v1alpha1.ClusterConfig, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cluster, data, err := readCluster(s.ClusterConfig)
	s.say(err)
	switch {
	case err == nil:
		// The same value for the same content, so that a change is seen.
		if !bytes.Equal(data, s.data) {
			s.set(cluster)
			s.data, s.kept = data, false
			s.sayUnknown()
		}
		s.keep()
	case s.cluster == nil && s.Kept != "":
		if cluster, _, _ := readCluster(s.Kept); cluster != nil {
			s.set(cluster)
		}
	}
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
	return cluster, data, bounded(err)
}

// maxProblems is how many problems of a file are logged and shown: one with 10,000 groups
// may have as many.
const maxProblems = 20

func bounded(err error) error {
	var list problem.List
	if !errors.As(err, &list) || len(list) <= maxProblems {
		return err
	}
	return fmt.Errorf("%w\nand %d more problems", list[:maxProblems], len(list)-maxProblems)
}

// set makes a cluster the last good one, and known to those who find the nodes.
func (s *Source) set(cluster *v1alpha1.ClusterConfig) {
	s.cluster = cluster
	if s.Nodes != nil {
		s.Nodes.SetCluster(cluster)
	}
}

// keep writes the copy, later if it cannot now: a disk that is full or read-only
// is no reason to work with old facts.
func (s *Source) keep() {
	if s.kept || s.Kept == "" {
		return
	}
	_, err := atomicfile.Write(s.Kept, s.data, 0o644)
	s.kept = err == nil
	s.keeping.Warn(s.Log, err, "a copy of cluster.yaml cannot be kept", "a copy of cluster.yaml is kept again", "file", s.Kept)
}

func (s *Source) say(err error) {
	s.reading.Error(s.Log, err, "cluster.yaml is not right, the last good one stays", "cluster.yaml is right again", "file", s.ClusterConfig)
	s.problem = ""
	if err != nil {
		s.problem = err.Error()
	}
}

// sayUnknown logs what is left out of the file.
func (s *Source) sayUnknown() {
	if unknown := v1alpha1.UnknownFields(s.data); len(unknown) > 0 {
		s.Log.Warn("cluster.yaml has fields that this agent does not know: it works without them, since it is older than the vipgen that rendered the file",
			"file", s.ClusterConfig, "fields", fmt.Sprintf("%.300q", unknown))
	}
}
