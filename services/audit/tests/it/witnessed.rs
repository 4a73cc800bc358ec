//! A witness over HTTP that has seen an earlier head: it says so, gets the proof from there, and its cosignature is published.

use crate::log::{Fixture, NOW};
use anyhow::{Context, Result};
use gpuledger_audit::witness::{WitnessSettings, Witnesses};
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{Kind, Note, Signer, Verifier};
use gpuledger_tlog::proof::verify_consistency;
use gpuledger_trail::stored;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// Answers `add-checkpoint` as tlog-witness has it, from the head it saw last on.
fn witness(listener: TcpListener, signer: Signer, log: Verifier, mut seen: (u64, Hash)) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let Ok((status, body)) = answer(&stream, &signer, &log, &mut seen) else { return };
        let head =
            format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(
    stream: &TcpStream,
    signer: &Signer,
    log: &Verifier,
    seen: &mut (u64, Hash),
) -> Result<(u16, String)> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body)?;
    let (proof, note) = body.split_once("\n\n").context("an empty line")?;
    let mut lines = proof.lines();
    let old: u64 = lines.next().and_then(|line| line.strip_prefix("old ")).context("old")?.parse()?;
    let proof: Vec<Hash> =
        lines.map(|line| Hash::from_base64(line).context("a hash")).collect::<Result<_>>()?;
    let (head, _) = Checkpoint::open(note.as_bytes(), log, &[])?;
    if old != seen.0 {
        return Ok((409, format!("{}\n", seen.0)));
    }
    if verify_consistency(old, seen.1, head.size, head.root, &proof).is_err() {
        return Ok((422, String::new()));
    }
    *seen = (head.size, head.root);
    Ok((200, signer.sign(Note::parse(note.as_bytes())?.text, 1_790_000_000)))
}

#[tokio::test]
async fn a_cosignature_is_published_with_its_head_and_a_forked_witness_is_left_alone_l_2() -> Result<()> {
    let fixture = Fixture::new().await?;
    fixture.record(5).await?;
    fixture.sequencer().drain(NOW).await?;
    fixture.publisher().publish(NOW).await?;
    let first = fixture.signer.last()?.0;
    fixture.record(4).await?;
    fixture.sequencer().drain(NOW).await?;
    fixture.publisher().publish(NOW).await?;
    let mut settings = Vec::new();
    for (name, root) in [("good.example", first.root), ("forked.example", Hash([9; 32]))] {
        let signer = Signer::from_seed(name, Kind::Cosigner, &[3; 32])?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/prefix", listener.local_addr()?);
        settings.push(WitnessSettings { url, key: signer.verifier().to_string() });
        let log = fixture.key();
        std::thread::spawn(move || witness(listener, signer, log, (5, root)));
    }
    let mut witnesses = Witnesses::new(&settings)?;
    assert_eq!(witnesses.show(&fixture.db, NOW).await?, 1);
    let published = stored::published(&mut *fixture.db.snapshot().await?).await?.context("a head")?;
    let keys: Vec<Verifier> =
        settings.iter().map(|one| Verifier::parse(&one.key)).collect::<Result<_, _>>()?;
    let (head, cosigned) = Checkpoint::open(published.note.as_bytes(), &fixture.key(), &keys)?;
    assert_eq!((head.size, cosigned), (9, vec![&keys[0]]));
    assert_eq!(witnesses.show(&fixture.db, NOW).await?, 0, "it is asked once a head");
    assert_eq!(fixture.publisher().publish(NOW).await?, 9, "and nobody waits for the other one");
    fixture.end().await
}
