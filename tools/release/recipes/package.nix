# The program of the release, as it was built there.
{ lib, stdenvNoCC, fetchurl, installShellFiles }:
let
  archives = {
{{- range $os, $name := .Systems}}{{range index $.Archives $os}}
    {{.Word "amd64" "x86_64" "arm64" "aarch64"}}-{{$os}} = {
      url = "{{.URL}}";
      sha256 = "{{.Sum}}";
    };
{{- end}}{{end}}
  };
in
stdenvNoCC.mkDerivation {
  pname = "lutra";
  version = "{{.Version}}";
  src = fetchurl (archives.${stdenvNoCC.hostPlatform.system}
    or (throw "lutra: no archive for ${stdenvNoCC.hostPlatform.system}"));
  nativeBuildInputs = [ installShellFiles ];
  dontStrip = true;
  installPhase = ''
    runHook preInstall
    install -D -m 755 lutra $out/bin/lutra
    install -D -m 644 config.yaml $out/share/lutra/config.yaml
    installManPage man/*.1
    installShellCompletion --bash completions/lutra.bash --zsh completions/_lutra --fish completions/lutra.fish
    runHook postInstall
  '';
  meta = {
    description = "{{.Summary}}";
    homepage = "{{.Page}}";
    license = lib.licenses.asl20;
    mainProgram = "lutra";
    platforms = builtins.attrNames archives;
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  };
}
