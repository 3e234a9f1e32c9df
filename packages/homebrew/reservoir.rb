# A template: tools/homebrew_formula.py fills in the version and the checksum of a release.
class Reservoir < Formula
  include Language::Python::Virtualenv

  desc "Your conversations with every model in one file, and the best context from them"
  homepage "https://pypi.org/project/reservoir-cli/"
  url "https://files.pythonhosted.org/packages/source/r/reservoir-cli/reservoir_cli-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "python@3.13"

  # The libraries and the compiled model are published as wheels only.
  def install
    virtualenv_create(libexec, "python3.13", without_pip: false)
    system libexec/"bin/python", "-m", "pip", "install", "--only-binary=:all:",
           "reservoir-cli-slim[bundled-model,mcp,serve]==#{version}"
    bin.install_symlink libexec/"bin/reservoir"
    man1.install_symlink libexec/"share/man/man1/reservoir.1"
    bash_completion.install_symlink libexec/"share/bash-completion/completions/reservoir"
    zsh_completion.install_symlink libexec/"share/zsh/site-functions/_reservoir"
    fish_completion.install_symlink libexec/"share/fish/vendor_completions.d/reservoir.fish"
  end

  test do
    ENV["RESERVOIR_HOME"] = testpath
    assert_match version.to_s, shell_output("#{bin}/reservoir --version")
    pipe_output("#{bin}/reservoir ingest --no-embed", "why did we drop Redis?", 0)
    assert_match "Redis", shell_output("#{bin}/reservoir search --keyword redis")
  end
end
