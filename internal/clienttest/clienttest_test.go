package clienttest

import (
	"os"
	"testing"
)

func TestAFolderBesideTheTestIsNoPythonPackage(t *testing.T) {
	Programs(t, "python3")
	t.Chdir(t.TempDir())
	if err := os.Mkdir("folder_of_go_code", 0o700); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", here)
	if installed(t.Context(), "python3", "folder_of_go_code", t.TempDir()) {
		t.Error("a folder in PYTHONPATH is taken for an installed package")
	}
	if !installed(t.Context(), "python3", "json", t.TempDir()) {
		t.Error("the standard library has json")
	}
}

func TestAPythonThatIsNotThereHasNoPackages(t *testing.T) {
	if installed(t.Context(), "no-such-python", "json", t.TempDir()) {
		t.Error("a program that is not there has json")
	}
}

func TestATestEndsWhereAProgramIsMissing(t *testing.T) {
	t.Setenv("LUTRA_EXAMPLES", "")
	t.Run("skipped", func(t *testing.T) {
		Programs(t, "no-such-program")
		t.Error("goes on without it")
	})
}
