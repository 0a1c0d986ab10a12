class Lutra < Formula
  desc "{{.Summary}}"
  homepage "{{.Page}}"
  version "{{.Version}}"
  license "{{.License}}"
{{range $os, $name := .Systems}}{{with index $.Archives $os}}
  on_{{$name}} do
{{- range .}}
    on_{{.Word "amd64" "intel" "arm64" "arm"}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}{{end}}
  def install
    bin.install "lutra"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/lutra.bash" => "lutra"
    zsh_completion.install "completions/_lutra"
    fish_completion.install "completions/lutra.fish"
    (etc/"lutra").install "config.yaml"
  end

  service do
    run [opt_bin/"lutra", "serve", "--config", etc/"lutra/config.yaml"]
    keep_alive true
    log_path var/"log/lutra.log"
    error_log_path var/"log/lutra.log"
  end

  test do
    assert_match "Answer: 84", shell_output("#{bin}/lutra ask 'What is 12 * 7?'")
  end
end
