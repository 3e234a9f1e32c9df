-- Written by hand, as Cursor keeps it.
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO cursorDiskKV VALUES ('agentKv:blob:1', 'x');
INSERT INTO cursorDiskKV VALUES ('composerData:c1', '{"_v":10,"composerId":"c1","name":"Pelicans and their size","createdAt":1778403600000,"modelConfig":{"modelName":"default"},"createdOnBranch":"pelicans","fullConversationHeadersOnly":[{"bubbleId":"b1","type":1},{"bubbleId":"b2","type":2},{"bubbleId":"b3","type":2},{"bubbleId":"b4","type":2},{"bubbleId":"gone","type":2},{"bubbleId":"b5","type":1},{"bubbleId":"b6","type":2},{"bubbleId":"b7","type":3}]}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b1', '{"_v":3,"type":1,"bubbleId":"b1","text":"How long is a brown pelican?","createdAt":"2026-05-10T09:00:01.000Z","images":[{"uuid":"i"}],"workspaceUris":["file:///home/ann/src/pelicans"]}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b2', '{"_v":3,"type":2,"bubbleId":"b2","text":"","createdAt":"2026-05-10T09:00:02.000Z","capabilityType":30,"thinking":{"text":"They mean the bird."},"allThinkingBlocks":[]}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b3', '{"_v":3,"type":2,"bubbleId":"b3","text":"I will look.","createdAt":"2026-05-10T09:00:03.000Z","modelInfo":{"modelName":"claude-opus-4-7"},"toolFormerData":{"tool":40,"name":"read_file_v2","toolCallId":"tool_1","status":"completed","params":"{\"targetFile\":\"notes.txt\"}","result":"{\"contents\":\"1.2 m\"}"}}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b4', '{"_v":3,"type":2,"bubbleId":"b4","text":"It is 1.2 m long.","timingInfo":{"clientStartTime":4745281.3,"clientRpcSendTime":1778403604000}}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b5', '{"_v":3,"type":1,"bubbleId":"b5","text":"How heavy is it?"}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b6', 'no json');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b7', '{"_v":3,"type":3,"bubbleId":"b7","text":"?"}');
INSERT INTO cursorDiskKV VALUES ('composerData:c2', '{"_v":2,"composerId":"c2","createdAt":1778407200000,"currentDir":"C:\\\\src\\\\birds","conversation":[{"type":1,"bubbleId":"o1","text":"What do pelicans eat?"},{"type":2,"bubbleId":"o2","text":"Fish."}]}');
INSERT INTO cursorDiskKV VALUES ('composerData:c3', '{"_v":10,"composerId":"c3","fullConversationHeadersOnly":[]}');
INSERT INTO cursorDiskKV VALUES ('composerData:c4', 'null');
